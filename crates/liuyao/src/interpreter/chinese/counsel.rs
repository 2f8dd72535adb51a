//! Practical counsel for each topic and outlook, in simplified Chinese.

use super::super::assessment::Outlook;
use super::super::topic::{Aspect, Topic};

/// Returns the counsel for a matter.
pub(super) fn counsel(topic: Topic, aspect: Option<Aspect>, outlook: Outlook) -> &'static str {
    let [favourable, mixed, adverse] = aspect.map_or_else(|| of_topic(topic), of_aspect);
    match outlook {
        Outlook::Favourable => favourable,
        Outlook::Mixed => mixed,
        Outlook::Adverse => adverse,
    }
}

fn of_topic(topic: Topic) -> [&'static str; 3] {
    match topic {
        Topic::Lost | Topic::Pets | Topic::Legal | Topic::Papers => of_things(topic),
        Topic::Career | Topic::Business | Topic::Wealth | Topic::Study => of_work(topic),
        Topic::Love | Topic::Family | Topic::Friends | Topic::Children => of_people(topic),
        Topic::Health | Topic::Home | Topic::Travel | Topic::Other => of_life(topic),
    }
}

fn of_aspect(aspect: Aspect) -> [&'static str; 3] {
    match aspect {
        Aspect::Debt => [
            "这笔钱讨得回；约定日子和数目，写成字据。",
            "能回来一部分，也会拖；分几次讨，每次都定日子。",
            "这笔钱难讨；凭据留好，不再往外借。",
        ],
        Aspect::Trade => [
            "这一笔有利可取；要卖就先定好价钱和数量，要留就不再加。",
            "得失相近；不动借来的钱，进出都分几次。",
            "这一笔多半得不偿失；不再加投，先定好止损的线。",
        ],
        Aspect::Layoff => [
            "留下的面大于被裁；手上的事做得看得见，不卷进是非。",
            "去留还没有定；手上的事做稳，简历也先备好。",
            "被裁的风险不小；先弄清补偿怎么算，现在就开始看别的机会。",
        ],
        Aspect::Reunion => [
            "还有回到一起的路；想说的直接说，也说清这一次会有什么不同。",
            "有可能回来，但还不稳；联系轻一点，看接下来几周怎么做。",
            "眼下回来的希望不大；少追问，把心思收回一半给自己。",
        ],
        Aspect::Surgery => [
            "底子撑得住手术，恢复有望；术前术后都按医嘱来。",
            "过得去，术后恢复会慢；风险问清楚，休养的日子留长些。",
            "眼下体力偏弱；时机请医生定，可以再问一位医生，不要拖延诊治。",
        ],
    }
}

fn of_things(topic: Topic) -> [&'static str; 3] {
    match topic {
        Topic::Lost => [
            "东西多半还在，找得回来；从最后一次用它的地方往回找，先问见过的人。",
            "找得到，但要费些工夫；先把去过的地方列一遍，一处一处排除。",
            "找回的把握不大；该挂失的先挂失，该报备的先报备，再慢慢找。",
        ],
        Topic::Pets => [
            "小家伙有生气，多半平安；吃住照旧，少换环境。",
            "会有几天反复；记下吃喝和精神，有一样不对就去看兽医。",
            "它眼下偏弱，别等；早些带去看兽医，回来安静养着。",
        ],
        Topic::Legal => [
            "形势偏向你这边；证据按时间排好，能谈就拿着优势谈。",
            "胜负未定，拖下去都耗；先请律师估一估胜算，再定是打是和。",
            "对方占上风，不宜硬碰；能和解就和解，先止住损失。",
        ],
        _ => [
            "文书有望下来；材料一次交齐，批复之前不再改动。",
            "会有补件或等待；自己先照清单核一遍，主动去问进度。",
            "这一次难批；先弄清缺的是哪一项，补好再递。",
        ],
    }
}

fn of_work(topic: Topic) -> [&'static str; 3] {
    match topic {
        Topic::Career => [
            "成面大于不成；该投的投，该谈的谈，条件落成文字再点头。",
            "走得通，但不会一步到位；手上的事先做稳，同时留一条备选。",
            "眼下强求不利；先守住现有的位置和收入，把拿得出手的成绩攒起来再动。",
        ],
        Topic::Business => [
            "可以做，宜小步先跑起来；先谈定一个肯付钱的客户，再谈扩张。",
            "做得成，利不厚；算清现金能撑几个月，分工和退出的办法写进协议。",
            "此时投入多、回收慢；把规模缩到赔得起的程度，先验证再投钱。",
        ],
        Topic::Wealth => [
            "财可取；约定的照数收下，要投的按原定数目进出，到了就收。",
            "有进有出，难有大得；不动借来的钱，讨要或进出都分几次来。",
            "求财吃力，守比攻好；收紧开支，凭据留好，暂不加投。",
        ],
        _ => [
            "考运可用；剩下的时间放在会做而常错的题上，证件和时间提前核对。",
            "成与不成在一线之间；挑分值最大的短板补，不再铺新书。",
            "照现在的准备还差一截；目标降一档或延一期，先把基础补实。",
        ],
    }
}

fn of_people(topic: Topic) -> [&'static str; 3] {
    match topic {
        Topic::Love => [
            "这段情有底子；想说的直接说，约一件两个人都能做的小事，比试探有用。",
            "有情而不稳；先别逼对方表态，看接下来几周怎么做，比听怎么说更准。",
            "眼下勉强不来；少追问，把心思收回一半给自己，隔一段时间再看。",
        ],
        Topic::Family => [
            "家里说得通；挑一顿饭的工夫把事摊开，先说感谢，再说想法。",
            "心是近的，话没说到一处；一次只谈一件事，不翻旧账。",
            "眼下越劝越僵；先退半步，请两边都信得过的人传话。",
        ],
        Topic::Friends => [
            "这份交情靠得住；有事直说，先给一点方便，对方会记得。",
            "交情还在，分寸要拿准；钱和秘密先别放进去。",
            "此时靠不太住；话收着说，要紧的事留字据，离是非远一点。",
        ],
        _ => [
            "子息有气；放宽心，按产检或备孕的步子走，少折腾。",
            "有望而要等；先把两个人的作息和检查补齐，不必每月逼自己。",
            "眼下气弱，急不得；先请医生查明缘由，身体养起来再说。",
        ],
    }
}

fn of_life(topic: Topic) -> [&'static str; 3] {
    match topic {
        Topic::Health => [
            "底子撑得住，恢复有望；按医嘱把疗程走完，作息先于补品。",
            "时好时坏，贵在守住；把症状和用药记下来给医生看，不自行加减药。",
            "身体正吃亏，拖不得；早些请医生再看一次，能推的事推掉，先歇下来。",
        ],
        Topic::Home => [
            "房子的事可以办；产权和手续先查清，合适就定，不必一等再等。",
            "能成，会拖；多看两处，漏水、采光、邻里和条款问细了再签。",
            "此时动不如静；价钱和条款都不在你这边，先缓一缓。",
        ],
        Topic::Travel => [
            "可以成行；照计划走，第一晚的住处和返程先定下。",
            "走得成，路上有耽搁；行程留半天空当，证件备一份副本。",
            "这一程不顺；能改期就改期，非走不可就走近一点、有人同行。",
        ],
        _ => [
            "这件事可以往前推；先走其中最小的一步，看到回应再走第二步。",
            "半通半阻；能定的先定下来，定不了的等一等消息。",
            "此时推不动；先停在原处，力气留到下一个时机。",
        ],
    }
}
