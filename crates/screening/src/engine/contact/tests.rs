use super::*;

fn found(text: &str) -> Vec<(String, String)> {
    contacts(text).into_iter().map(|found| (found.kind, found.text)).collect()
}

#[test]
fn finds_each_kind() {
    for (text, kind, contact) in [
        ("加我13800138000", "phone", "13800138000"),
        ("１３８-００１３-８０００", "phone", "１３８-００１３-８０００"),
        ("打+86 139 1234 5678", "phone", "86 139 1234 5678"),
        ("一三八零零一三八零零零找我", "phone", "一三八零零一三八零零零"),
        ("咨询400-820-8820", "phone", "400-820-8820"),
        ("010-62781234 上班时间", "phone", "010-62781234"),
        ("①③⑧⓪⓪①③⑧", "contact", "①③⑧⓪⓪①③⑧"),
        ("q1 2 3 4 5 6 7", "qq", "1 2 3 4 5 6 7"),
        ("扣扣：48213 看资料", "qq", "48213"),
        ("企鹅号三四八一零九七", "qq", "三四八一零九七"),
        ("加微xq48291", "wechat", "xq48291"),
        ("微信号: abc_2024", "wechat", "abc_2024"),
        ("VX：wander88", "wechat", "wander88"),
        ("V❤：48213077", "wechat", "48213077"),
        ("tg @lucky_88", "telegram", "lucky_88"),
        ("t.me/lucky", "telegram", "t.me/lucky"),
        ("看www.abc.com", "url", "www.abc.com"),
        ("https://a.b/c?d=1。", "url", "https://a.b/c?d=1"),
        ("登录abc点com领取", "url", "abc点com"),
        ("ａｂｃ．ｃｏｍ", "url", "ａｂｃ．ｃｏｍ"),
        ("写信给a.b@qq.com吧", "mail", "a.b@qq.com"),
        ("me@163.com", "mail", "me@163.com"),
        ("48213077#qq.com", "mail", "48213077#qq.com"),
        ("48213077找我", "contact", "48213077"),
        ("1 3 2 5 4 6 7 8 9 0 1", "phone", "1 3 2 5 4 6 7 8 9 0 1"),
        ("加我 482 130 771", "contact", "482 130 771"),
        ("482-130-771", "contact", "482-130-771"),
        ("482 130 771", "contact", "482 130 771"),
        ("482·130·771", "contact", "482·130·771"),
        ("小王 482 130 771", "contact", "482 130 771"),
        ("加我 4821 3077", "contact", "4821 3077"),
        ("2020年，48213077加群", "contact", "48213077"),
        ("1丶3丶9丶1丶2丶3丶4丶5丶6丶7丶8", "phone", "1丶3丶9丶1丶2丶3丶4丶5丶6丶7丶8"),
        ("1-3-9-1-2-3-4-5-6-7-8", "phone", "1-3-9-1-2-3-4-5-6-7-8"),
        ("电话：482.130.771", "phone", "482.130.771"),
        ("喜欢的进 QQ裙 482130771 聊聊", "qq", "482130771"),
        ("丘丘48213077", "qq", "48213077"),
        ("微.信 abc_2024", "wechat", "abc_2024"),
        ("V X abc_2024", "wechat", "abc_2024"),
        ("VX-abc2024", "wechat", "abc2024"),
        ("WeChat ID abc_2024", "wechat", "abc_2024"),
        ("我的微信ID：abc2024", "wechat", "abc2024"),
        ("微信搜 abc_2024", "wechat", "abc_2024"),
        ("微心 abc2024", "wechat", "abc2024"),
        ("威❤abc2024", "wechat", "abc2024"),
        ("abc2024 . com", "url", "abc2024 . com"),
        ("abc2024丶com", "url", "abc2024丶com"),
        ("48213077 @ qq . com", "mail", "48213077 @ qq . com"),
        ("abc (at) gmail (dot) com", "mail", "abc (at) gmail (dot) com"),
        ("138oo138ooo", "phone", "138oo138ooo"),
        ("l5O 2233 4455", "phone", "l5O 2233 4455"),
        ("有资源加 48213o771", "contact", "48213o771"),
        ("幺三八洞洞幺三八洞洞洞", "phone", "幺三八洞洞幺三八洞洞洞"),
        ("打开103.45.67.89:8080", "url", "103.45.67.89:8080"),
        ("w w w . a b c . c o m", "url", "w w w . a b c . c o m"),
        ("abc2024。c0m", "url", "abc2024。c0m"),
        ("abc2024【.】com", "url", "abc2024【.】com"),
        ("bit.ly/3abcde", "url", "bit.ly/3abcde"),
        ("a b c @ q q . c o m", "mail", "a b c @ q q . c o m"),
        ("溦信：abc2024", "wechat", "abc2024"),
        ("V信 2024abc", "wechat", "2024abc"),
        ("✈️@lucky_88", "telegram", "lucky_88"),
        ("🐧48213077", "qq", "48213077"),
        ("whatsapp +852 9123 4567", "phone", "852 9123 4567"),
        ("抖音号：lucky_88", "contact", "lucky_88"),
    ] {
        assert_eq!(found(text), [(kind.to_owned(), contact.to_owned())], "{text}");
        let matched = &contacts(text)[0];
        let characters: Vec<char> = text.chars().collect();
        assert_eq!(characters[matched.start..matched.end].iter().collect::<String>(), contact);
    }
}

#[test]
fn exempts_other_numbers() {
    for text in [
        "",
        "青山",
        "1990.05.17",
        "20240101",
        "520 1314",
        "三三两两",
        "2019年到2024年",
        "12345年 67890",
        "初九 六二 九三 六四 九五 上六",
        "初六，九二，六三，九四，六五，上九",
        "19900517 0830",
        "199005170830",
        "1990 05 17 08 30",
        "2333333",
        "66666666",
        "5555555",
        "1990-5-17",
        "1990/05/17 08:30",
        "2023-2026 在路上",
        "9:00-18:00",
        "6:45，7:45，8:30",
        "2026.01.01 08:00",
        "1,000,000",
        "12,345,678.90",
        "3.1415926",
        "v1.2.3.4",
        "192.168.1.1",
        "1680*1050",
        "1234567",
        "7654321",
        "一二三四五六七",
        "0123456789",
        "10000000",
        "788876 777888",
        "1000000元",
        "5.17-6.18",
        "8.5-9.5",
        "一九九零年五月十七日",
        "二零二六 在路上",
        "1122334455",
        "ASP.NET",
        "第1234567个",
        "加班到18:30",
        "19900517-20240101",
        "6∶4、6∶4、3∶6、6∶3",
        "163.com邮箱",
        "2026-01-01 2026-12-31",
        "2019·2024",
        "1990·05·17",
        "1998|05|17",
        "1990_05_17",
        "1990 0517",
        "2024→2025→2026",
        "492357816",
        "294 753 618",
        "4 9 2 3 5 7 8 1 6",
        "1 6 2 7 3 8 4 9 5 10",
        "ISO 9001:2015",
        "146·258·369",
        "147 258 369",
        "816 357 492",
        "报数：358 127 96",
        "数字起卦 358 127 963",
        "3+3+2=8, 2+2+3=7",
        "2^10=1024",
        "工资12000-15000",
        "用了2000-100的券",
        "0830-1730",
        "根号2=1.4142135623",
        "1999.9.9-2009.9.9",
        "1949.10.1 1978.12.18",
        "178-65-26",
        "520 1314 3344",
        "7758521",
        "101010101",
        "12121212",
        "123123123",
        "13579 24680",
        "1111 2222 3333",
        "1 1 2 3 5 8 13 21",
        "10 20 30 40 50",
        "起运 5 15 25 35 45 55",
        "1024 2048 4096",
        "GB 18030-2022",
        "订单号：1421846721",
        "编号 2024-0001-0002",
        "iPhone · Pro",
        "010101 101010",
        "7788 9966",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
}

#[test]
fn exempts_draws_marks_and_lists() {
    for text in [
        "24681012",
        "03 07 12 19 25 31",
        "02 09 15 21 28 33+07",
        "语数英 98 95 87 92 100",
        "准考证号 1101051990",
        "2026-05-20 2026-06-18 2026-10-01",
        "192.168.1.1:8080",
        "lol 2333333",
        "10l 20l",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
}

#[test]
fn exempts_assigned_nicknames() {
    let words = ["用户", "手机用户", "易友", "user", "user_"].map(str::to_owned);
    let is_assigned = |nickname: &str| is_assigned_nickname(nickname, words.iter());
    let assigned = ["用户12345678", " 用户1234567890 ", "手机用户8888888", "User 12345678", "user_1234567"];
    for nickname in assigned.into_iter().chain(["易友12345678"]) {
        assert!(is_assigned(nickname), "{nickname}");
    }
    assert!(is_assigned_nickname("Yarrow12345678", ["yarrow".to_owned()].iter()));
    for nickname in
        ["用户13800138000", "加用户12345678", "用户12345678找我", "12345678", "青山12345678", "用户１２３４５６７"]
    {
        assert!(!is_assigned(nickname), "{nickname}");
    }
}

#[test]
fn time_grows_linearly_with_the_text() {
    let duration = |text: &str| {
        let begun = cpu_time::ThreadTime::now();
        std::hint::black_box(contacts(text));
        begun.elapsed()
    };
    for unit in ["1 ", "a.", "1:", "加1", "ab@", "九二 ", "12345", "q", "1.1.", "1,111", "(1)", "1=", "微 ", "a @ "]
    {
        let (short, long) = (duration(&unit.repeat(500)), duration(&unit.repeat(8_000)));
        assert!(long < short * 80, "{unit}: {short:?} then {long:?}");
    }
}

#[test]
fn a_saying_of_any_length_needs_no_deep_stack() {
    assert!(found(&format!("QQ{}", "520".repeat(50_000))).is_empty());
}
