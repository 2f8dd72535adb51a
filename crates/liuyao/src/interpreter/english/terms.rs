//! Names and short phrases in English.

use super::super::topic::{PartnerReason, Person, Sought, Topic};
use super::super::{AskerGender, LineFacts, NatureFacts};
use crate::{Branch, Element};

pub(super) fn ordinal(position: u8) -> &'static str {
    let names = ["first", "second", "third", "fourth", "fifth", "top"];
    names.get(usize::from(position).saturating_sub(1)).copied().unwrap_or("")
}

pub(super) fn position(position: u8) -> &'static str {
    let names = ["bottom line", "second line", "third line", "fourth line", "fifth line", "top line"];
    names.get(usize::from(position).saturating_sub(1)).copied().unwrap_or("")
}

pub(super) fn element(element: Element) -> &'static str {
    match element {
        Element::Wood => "wood",
        Element::Fire => "fire",
        Element::Earth => "earth",
        Element::Metal => "metal",
        Element::Water => "water",
    }
}

/// The months of the year. The month of each branch ends in the first days of the one with its number.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Returns the name of a month, from 1.
pub(super) fn month(number: i8) -> &'static str {
    usize::try_from(number).ok().and_then(|number| MONTHS.get(number.checked_sub(1)?)).copied().unwrap_or("")
}

/// Returns the animal of a branch.
pub(super) fn animal(branch: Branch) -> &'static str {
    match branch {
        Branch::Zi => "Rat",
        Branch::Chou => "Ox",
        Branch::Yin => "Tiger",
        Branch::Mao => "Rabbit",
        Branch::Chen => "Dragon",
        Branch::Si => "Snake",
        Branch::Wu => "Horse",
        Branch::Wei => "Goat",
        Branch::Shen => "Monkey",
        Branch::You => "Rooster",
        Branch::Xu => "Dog",
        Branch::Hai => "Pig",
    }
}

/// Returns the animal of a branch with its article.
pub(super) fn with_article(branch: Branch) -> String {
    let article = if branch == Branch::Chou { "an" } else { "a" };
    format!("{article} {}", animal(branch))
}

pub(super) fn kin(kin: &str) -> &'static str {
    match kin {
        "父母" => "Parent",
        "兄弟" => "Sibling",
        "官鬼" => "Officer",
        "妻财" => "Wealth",
        _ => "Offspring",
    }
}

/// Returns kin, animal and element: Wealth (Dragon, earth).
pub(super) fn nature(nature: NatureFacts) -> String {
    format!("{} ({}, {})", kin(nature.kin), animal(nature.branch), element(nature.branch.element()))
}

/// Returns place and branch: the third line (Dragon, earth).
pub(super) fn place(line: &LineFacts) -> String {
    let branch = line.nature.branch;
    format!("the {} ({}, {})", position(line.position), animal(branch), element(branch.element()))
}

/// Returns place and nature: the third line, Wealth (Dragon, earth).
pub(super) fn line(line: &LineFacts) -> String {
    format!("the {}, {}", position(line.position), nature(line.nature))
}

pub(super) fn palace(chinese_name: &str) -> &'static str {
    match chinese_name {
        "乾" => "Qian",
        "兑" => "Dui",
        "离" => "Li",
        "震" => "Zhen",
        "巽" => "Xun",
        "坎" => "Kan",
        "艮" => "Gen",
        _ => "Kun",
    }
}

pub(super) fn method(name: &str) -> Option<&'static str> {
    match name {
        "three_coins" => Some("You cast it with three coins"),
        "yarrow_stalks" => Some("You cast it with yarrow stalks"),
        "manual" => Some("You entered the lines yourself"),
        "time" => Some("You cast it from the hour by the plum blossom method"),
        "numbers" => Some("You cast it from your numbers by the plum blossom method"),
        _ => None,
    }
}

/// Returns the direction in which a branch lies.
pub(super) fn direction(branch: Branch) -> &'static str {
    match branch {
        Branch::Zi => "north",
        Branch::Chou | Branch::Yin => "north-east",
        Branch::Mao => "east",
        Branch::Chen | Branch::Si => "south-east",
        Branch::Wu => "south",
        Branch::Wei | Branch::Shen => "south-west",
        Branch::You => "west",
        Branch::Xu | Branch::Hai => "north-west",
    }
}

/// Returns the months in which an element is fed or at home.
pub(super) fn season(element: Element) -> &'static str {
    match element {
        Element::Wood => "late autumn to early April",
        Element::Fire => "February to early July",
        Element::Earth => "May to early August",
        Element::Metal => "July to early October",
        Element::Water => "August to early January",
    }
}

pub(super) fn spirit(name: &str) -> &'static str {
    match name {
        "青龙" => "The Green Dragon rides it, a sign of gladness.",
        "朱雀" => "The Red Bird rides it: words, papers and news play a part.",
        "勾陈" => "The Hooked Snake rides it: things go slowly and are tied up with old business.",
        "螣蛇" => "The Flying Serpent rides it, so expect doubt and second thoughts.",
        "白虎" => "The White Tiger rides it: it comes fast and can bruise.",
        _ => "The Dark Warrior rides it: something here has not been said aloud.",
    }
}

/// Returns the matter, as in "a question about work".
pub(super) fn matter(topic: Topic) -> &'static str {
    match topic {
        Topic::Lost => "a lost thing",
        Topic::Pets => "an animal",
        Topic::Legal => "a dispute",
        Topic::Children => "having a child",
        Topic::Health => "health",
        Topic::Papers => "papers and permits",
        Topic::Study => "studies and exams",
        Topic::Business => "a business",
        Topic::Career => "work",
        Topic::Wealth => "money",
        Topic::Love => "love",
        Topic::Friends => "friends and colleagues",
        Topic::Home => "a home",
        Topic::Travel => "a journey",
        Topic::Family => "family",
        Topic::Other => "this matter",
    }
}

/// Returns the other side of the question, for which the object line stands.
pub(super) fn other_side(topic: Topic) -> &'static str {
    match topic {
        Topic::Lost => "the place where it lies",
        Topic::Pets => "its surroundings",
        Topic::Legal => "the other party",
        Topic::Children => "your partner",
        Topic::Health => "those who treat you",
        Topic::Papers => "the office that decides",
        Topic::Study => "the school and its examiners",
        Topic::Business => "clients and partners",
        Topic::Career => "the employer",
        Topic::Wealth => "the other side of the deal",
        Topic::Love => "the other person",
        Topic::Friends => "that person",
        Topic::Home => "the seller, landlord or neighbours",
        Topic::Travel => "the destination",
        Topic::Family => "the others at home",
        Topic::Other => "the world outside",
    }
}

/// Returns the part that lines of a kin play in a topic.
pub(super) fn role(topic: Topic, kin: &str) -> &'static str {
    let [parents, officials, wealth, children, siblings] = match topic {
        Topic::Career => [
            "contracts and the firm",
            "the post and those above you",
            "pay",
            "freedom and juniors",
            "colleagues and rivals",
        ],
        Topic::Business => [
            "contracts and premises",
            "officials and risk",
            "profit",
            "customers and product",
            "competitors and partners",
        ],
        Topic::Wealth => {
            ["paperwork and effort", "taxes and risk", "the money", "the source of money", "costs and those who share"]
        }
        Topic::Love => {
            ["elders and formal ties", "the man", "the woman", "children and play", "other people and rivals"]
        }
        Topic::Study => [
            "the paper and the degree",
            "rank and admission",
            "money and distraction",
            "ease and ideas",
            "fellow candidates",
        ],
        Topic::Health => ["strain and worry", "the illness", "food", "the remedy", "wear on the body"],
        Topic::Children => {
            ["elders and worry", "ailments and fear", "the mother's body", "the child", "sisters and strain"]
        }
        Topic::Family => {
            ["parents", "husband and pressure", "wife and household money", "children", "brothers and sisters"]
        }
        Topic::Friends => {
            ["rules and letters", "quarrels and pressure", "money and interest", "good company", "friends"]
        }
        Topic::Home => {
            ["the house and its deed", "officials and hidden defects", "the price", "comfort", "other buyers and costs"]
        }
        Topic::Travel => {
            ["luggage and transport", "trouble on the way", "travel money", "safety", "companions and delays"]
        }
        Topic::Papers => ["the document itself", "the authority", "fees", "room for manoeuvre", "other applicants"],
        Topic::Lost => ["papers, clothes and keys", "a thief", "valuables", "clues", "family or people you live with"],
        Topic::Legal => ["pleadings and evidence", "the court", "money", "room to settle", "costs"],
        Topic::Pets => ["care and worry", "the illness", "food", "the animal itself", "its companions"],
        Topic::Other => ["papers and elders", "pressure and rules", "money", "ease and the young", "peers and costs"],
    };
    match kin {
        "父母" => parents,
        "官鬼" => officials,
        "妻财" => wealth,
        "子孙" => children,
        _ => siblings,
    }
}

/// Returns the words that name the line for the matter, without its place.
pub(super) fn significator(
    topic: Topic,
    sought: Sought,
    person: Option<Person>,
    partner: Option<PartnerReason>,
) -> String {
    let matter = matter(topic);
    match (sought, partner, person) {
        (Sought::Kin(name), Some(PartnerReason::Profile(AskerGender::Male)), _) => {
            format!("For a man, the old method reads a partner from the {} line", kin(name))
        }
        (Sought::Kin(name), Some(PartnerReason::Profile(AskerGender::Female)), _) => {
            format!("For a woman, the old method reads a partner from the {} line", kin(name))
        }
        (Sought::Kin(name), Some(_), _) => {
            format!("In love, {} is read from the {} line", role(topic, name), kin(name))
        }
        (_, Some(_), _) => "In love, the other person is read here from the line opposite your own".to_owned(),
        (Sought::Kin(name), None, Some(person)) if topic == Topic::Family => {
            format!("You ask about {}, who is read from the {} line", self::person(person), kin(name))
        }
        (Sought::Kin(name), None, Some(person)) => {
            format!(
                "You ask about {matter} on behalf of {}, who is read from the {} line",
                self::person(person),
                kin(name)
            )
        }
        (Sought::Kin(name), None, None) => {
            format!("In a question about {matter}, watch the {} line ({})", kin(name), role(topic, name))
        }
        (Sought::Object | Sought::Partner, None, _) => {
            format!("In a question about {matter} that turns on somebody else, watch the line opposite your own")
        }
        (Sought::Subject, None, _) if topic == Topic::Other => {
            "The line to watch is the one that stands for you".to_owned()
        }
        (Sought::Subject, None, _) => format!("In a question about {matter}, watch the line that stands for you"),
    }
}

fn person(person: Person) -> &'static str {
    match person {
        Person::Man => "a man",
        Person::Woman => "a woman",
        Person::Parent => "an elder",
        Person::Child => "a child",
        Person::Sibling => "a sibling or friend",
        Person::Animal => "an animal",
    }
}
