//! Characters that look like others: small capitals, similar Cyrillic and Greek letters, enclosed letters and digits.
//!
//! Contains only mappings that Unicode's compatibility mappings lack. Han characters are never mapped to digits or
//! Latin letters, because a list that contains the character 三 would stop matching.

/// Source and target characters, in parallel. Capitals without a row of their own are looked up in lower case.
const PAIRS: &[(&str, &str)] = &[
    // Small capitals.
    ("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnopqrstuvwyz"),
    // Cyrillic.
    ("авсԁеһіјкӏмнорԛгѕтуѵԝхуьпшєёұү", "abcdehijklmhopqrstyvwxybnweeyy"),
    // Greek, whose capitals and small letters resemble different Latin letters.
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "abezhikmnoptyx"),
    ("αβγεηικμνορστυχωϲϳϹϺ", "abyenikuvopotuxwcjcm"),
    // Lisu.
    ("ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ", "bpdtgkjczfmnlsrvhwxyaeiou"),
    // Cherokee.
    ("ᎠᎡᎢᎥᎩᎪᎫᎬᎳᎷᎻᏀᏃᏙᏚᏞᏟᏢᏦᏴ", "drtiyajewmhgzvslcpkb"),
    // Coptic.
    ("ⲁⲃⲉⲓⲕⲙⲛⲟⲣⲥⲧⲩⲭ", "abeikmnopctyx"),
    // Currency signs.
    ("¢₵⭕", "cco"),
    // Armenian.
    ("օսոհցզյլՏՍՕԼ", "ounhgqjlsuol"),
    // Latin letters with strokes and hooks, and phonetic letters.
    ("ɑɐəɛɡɩıʌʋɦɾʈɖɓƅƈɗƒɠƙłɫɱɲŋɵøƥɋʂƭŧħđʉƶʐȥɏƴðþƀɨɯɹʇʞȼɇɉɍ", "aaeegiivvhrtdbbcdfgkllmnnoopqstthduzzzyydpbimrtkcejr"),
    // More Cyrillic: letters with descenders and hooks.
    ("цԍҍгғқҝҡӄҟңҥҭҳҽҿәҫҙӡѡԃ", "ugbrfkkkkkhhtxeeaczzwd"),
    // Canadian syllabics, and the Lisu and runic letters beside them in fancy alphabets.
    ("ᗩᗅᗷᑕᗞᗪᗫᗴᕮᖴᘜᕼᓰᒍᖽᒪᗰᑎᘉᗝᓍᑭᑫᖇᔕᖶᑌᑘᐯᗐᗯᘺ᙭ᖻᖿᘔᐱᑢᐁᗡᖺᖗᒎ", "aabcdddeefghijklmnnoopqrstuuvvwwxykzacvdnsj"),
    ("ᛕᚱᛒᛏᛗᚺᚷᛖᛁ", "krbtmhxei"),
    // Lookalikes of Han characters: bopomofo, katakana, radicals.
    ("ㄧㄚロニハエカタト", "一丫口二八工力夕卜"),
    ("⺟⺠⻅⻉⻋⻓⻔⻘⻚⻛⻜⻝⻢⻤⻥⻦⻨⻩⻬⻰⻳", "母民见贝车长门青页风飞食马鬼鱼鸟麦黄齐龙龟"),
];

/// Ranges of enclosed letters, each from A to Z, without a compatibility mapping in Unicode: negative circled,
/// negative squared, regional indicators.
const ENCLOSED_ALPHABETS: &[u32] = &[0x1_F150, 0x1_F170, 0x1_F1E6];

/// Ranges of enclosed numbers without a compatibility mapping: first code point, its number, length.
const ENCLOSED_NUMBERS: &[(u32, u32, u32)] = &[
    (0x24EB, 11, 10),
    (0x24F5, 1, 10),
    (0x24FF, 0, 1),
    (0x2776, 1, 10),
    (0x2780, 1, 10),
    (0x278A, 1, 10),
    (0x1_F10B, 0, 1),
    (0x1_F10C, 0, 1),
];

/// Characters read as several letters, and the only regional indicators that spell words.
const SPELLED: &[(char, &str)] = &[
    ('🆎', "ab"),
    ('🆑', "cl"),
    ('🆒', "cool"),
    ('🆓', "free"),
    ('🆔', "id"),
    ('🆕', "new"),
    ('🆖', "ng"),
    ('🆗', "ok"),
    ('🆘', "sos"),
    ('🆙', "up"),
    ('🆚', "vs"),
    ('æ', "ae"),
    ('œ', "oe"),
    ('ß', "ss"),
];

/// The zeros of the decimal digits of other scripts. The other nine digits follow each zero.
const ZEROS: &[u32] = &[
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0, 0xF20,
    0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0,
    0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0x1_04A0, 0x1_0D30, 0x1_1066, 0x1_10F0, 0x1_1136, 0x1_11D0, 0x1_12F0,
    0x1_1450, 0x1_14D0, 0x1_1650, 0x1_16C0, 0x1_1730, 0x1_18E0, 0x1_1950, 0x1_1C50, 0x1_1D50, 0x1_1DA0, 0x1_1F50,
    0x1_6A60, 0x1_6AC0, 0x1_6B50, 0x1_E140, 0x1_E2F0, 0x1_E4F0, 0x1_E950,
];

/// Returns pairs of a character and the single character that it resembles.
pub(super) fn pairs() -> impl Iterator<Item = (char, char)> {
    let digits = ZEROS.iter().flat_map(|&zero| (0..10).map(move |value| (zero + value, 0x30 + value)));
    let letters = ENCLOSED_ALPHABETS.iter().flat_map(|&first| (0..26).map(move |value| (first + value, 0x61 + value)));
    let coded =
        digits.chain(letters).filter_map(|(source, target)| Some((char::from_u32(source)?, char::from_u32(target)?)));
    PAIRS.iter().flat_map(|(sources, targets)| sources.chars().zip(targets.chars())).chain(coded)
}

/// Returns characters that represent several, with the text that they represent.
pub(super) fn spellings() -> impl Iterator<Item = (char, String)> {
    let numbers = ENCLOSED_NUMBERS.iter().flat_map(|&(first, number, count)| {
        (0..count).filter_map(move |step| Some((char::from_u32(first + step)?, (number + step).to_string())))
    });
    SPELLED.iter().map(|&(character, text)| (character, text.to_owned())).chain(numbers)
}

/// Returns the class of a character in leet spelling: the letter that represents all of its class. `None` for
/// characters that spell no Latin letter.
pub(super) fn leet_class(character: char) -> Option<char> {
    Some(match character {
        'i' | 'l' | '1' | '!' | '|' => 'i',
        'o' | '0' => 'o',
        'e' | '3' | '€' => 'e',
        'a' | '4' | '@' => 'a',
        's' | '5' | '$' => 's',
        't' | '7' | '+' => 't',
        'b' | '8' => 'b',
        'g' | '9' => 'g',
        'z' | '2' => 'z',
        'a'..='z' => character,
        _ => return None,
    })
}

/// Returns true if a character that is no letter may replace this letter.
pub(super) fn is_leet_for(character: char, letter: char) -> bool {
    matches!(
        (letter, character),
        ('i', '1' | '!' | '|')
            | ('l', '1' | '|')
            | ('o', '0')
            | ('e', '3' | '€')
            | ('a', '4' | '@')
            | ('s', '5' | '$')
            | ('t', '7' | '+')
            | ('b', '8')
            | ('g', '9')
            | ('z', '2')
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_as_many_targets_as_sources() {
        for (sources, targets) in PAIRS {
            assert_eq!(sources.chars().count(), targets.chars().count(), "{sources} / {targets}");
        }
    }

    #[test]
    fn every_leet_sign_shares_the_class_of_its_letter() {
        for sign in "0123456789!|@$+€".chars() {
            for letter in 'a'..='z' {
                if is_leet_for(sign, letter) {
                    assert_eq!(leet_class(sign), leet_class(letter), "{sign} for {letter}");
                }
            }
        }
    }
}
