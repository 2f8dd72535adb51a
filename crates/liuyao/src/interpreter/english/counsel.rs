//! Practical counsel for each topic and outlook, in English.

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
            "the money can be had back. Agree on a day and a sum, and have both in writing.",
            "part of it may come back, and late. Ask for it in small steps, each with a date.",
            "getting it back will be hard. Keep the proof of the debt in order, and lend nothing more.",
        ],
        Aspect::Trade => [
            "there is gain in it. If you sell, settle the price and amount beforehand; if you hold, add nothing.",
            "gain and loss are close together. Use no borrowed money, and trade in small steps.",
            "this trade is more likely to cost you than to pay. Put nothing more in, and decide where you would stop.",
        ],
        Aspect::Layoff => [
            "you are more likely to stay than to be laid off. Keep your work visible, and stay out of quarrels.",
            "whether you stay is undecided. Do the work at hand well, and bring your CV up to date.",
            "the risk of losing this post is real. Learn the terms of a severance, and start looking now.",
        ],
        Aspect::Reunion => [
            "there is a way back to each other. Say what you mean, and name what would be different this time.",
            "a return is possible, not certain. Keep the contact light, and watch what is done in the coming weeks.",
            "a return is unlikely for now. Do not chase it, and give some of that care back to yourself.",
        ],
        Aspect::Surgery => [
            "there is strength for an operation and to recover from it. Follow the surgeon's instructions before and after.",
            "it can be got through, with slow days afterwards. Ask about the risks, and plan a longer rest.",
            "strength is low at present. Ask the doctors about the best time and a second opinion, and do not delay care.",
        ],
    }
}

fn of_things(topic: Topic) -> [&'static str; 3] {
    match topic {
        Topic::Lost => [
            "it is probably still there to be found. Work back from the last place you used it, and ask whoever saw it first.",
            "it can be found, though not quickly. List the places you have been and rule them out one at a time.",
            "the chances of getting it back are poor. Block or report what needs it first, then search at leisure.",
        ],
        Topic::Pets => [
            "the animal is still strong and should be all right. Keep food and place as they are.",
            "there will be ups and downs for some days. Note how it eats and moves, and see a vet if either changes.",
            "it is weak at the moment, so do not wait. See a vet soon and keep it quiet afterwards.",
        ],
        Topic::Legal => [
            "the ground is on your side. Put the evidence in date order, and negotiate while you are ahead.",
            "the outcome is open, and delay costs both. Have a lawyer judge the odds before you choose.",
            "the other side has the better ground. Settle if you can, and stop the losses first.",
        ],
        _ => [
            "the papers should come through. Hand everything in at once, and change nothing while it is decided.",
            "expect a request for more, or a wait. Check the list yourself, then ask how it stands.",
            "approval is unlikely this time. Find out which item is missing, mend that, and apply again.",
        ],
    }
}

fn of_work(topic: Topic) -> [&'static str; 3] {
    match topic {
        Topic::Career => [
            "it is more likely to come off than not. Apply, have the talk, and get the terms in writing before you say yes.",
            "there is a way through, but not in one step. Keep your present work solid and a second option warm.",
            "pushing will not help now. Hold on to the place and income you have, and gather results to show later.",
        ],
        Topic::Business => [
            "it can work. Start small, win one client who pays, and only then think of growing.",
            "it can be done, at a thin margin. Count how many months the cash lasts, and write down who does what.",
            "it would swallow more than it returns for now. Cut it to a size you can afford to lose, and test it first.",
        ],
        Topic::Wealth => [
            "there is money to be had. Take what is agreed, and invest no more than you planned.",
            "some comes in and some goes out. Use no borrowed money, and ask or invest in small steps.",
            "gain comes hard now, and keeping is better than reaching. Cut spending, and keep your papers in order.",
        ],
        _ => [
            "the exam leans your way. Spend the time left on what you know but get wrong, and check dates and documents.",
            "it hangs on a narrow margin. Mend the gap that costs the most marks, and open no new books.",
            "what you have prepared falls short. Aim one step lower or a term later, and build up the basics.",
        ],
    }
}

fn of_people(topic: Topic) -> [&'static str; 3] {
    match topic {
        Topic::Love => [
            "there is something to build on. Say what you mean, and suggest one small thing that you can do together.",
            "there is feeling, but it is not settled. Ask for no declaration yet; watch what is done in the coming weeks.",
            "it cannot be forced now. Ask less, give some of that care back to yourself, and look again later.",
        ],
        Topic::Family => [
            "the family can be talked to. Choose one meal, begin with thanks, and then say what you want.",
            "hearts are close but words miss. Take one subject at a time, and leave old accounts closed.",
            "persuasion only hardens things now. Step back, and let someone both sides trust carry the message.",
        ],
        Topic::Friends => [
            "this is someone you can count on. Speak plainly, and do them a small favour first.",
            "the bond is there, but keep it in proportion. Keep money and secrets out of it for now.",
            "do not lean on this at present. Say less, keep a record of what matters, and stay out of quarrels.",
        ],
        _ => [
            "the signs for a child are good. Keep to your doctor's schedule, and let the worry go.",
            "there is hope, and a wait. Put sleep and check-ups in order for both of you, without a monthly verdict.",
            "the forces are low and cannot be hurried. Ask a doctor for the cause first, and get strong again.",
        ],
    }
}

fn of_life(topic: Topic) -> [&'static str; 3] {
    match topic {
        Topic::Health => [
            "there is strength to recover with. Finish the treatment as prescribed, and put sleep before supplements.",
            "there will be better and worse days. Keep a note of symptoms and medicines for your doctor.",
            "the body is paying for something. See the doctor again soon, cancel what can wait, and rest.",
        ],
        Topic::Home => [
            "you can go ahead with the house. Check title and papers, and if it fits, do not wait for a better one.",
            "it will work, with delays. See two more places, and ask about damp, light, neighbours and every clause.",
            "staying put beats moving now. Neither price nor terms are on your side, so let it rest.",
        ],
        Topic::Travel => [
            "you can set out. Keep to the plan, with the first night and the way back booked.",
            "you will get there, with delays on the way. Leave half a day free, and carry copies of your papers.",
            "this trip goes against the grain. Postpone it if you can; if not, make it shorter, and take company.",
        ],
        _ => [
            "it can be moved forward. Take the smallest step first, and wait for an answer before the second.",
            "the way is half open. Settle what can be settled, and let the rest wait for news.",
            "it will not be moved now. Stop where you are, and save your strength for a better moment.",
        ],
    }
}
