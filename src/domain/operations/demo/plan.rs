//! The plan of the demonstration's past: who does what when.
//!
//! A plan depends only on the time of day of its end, so that every start on one day shows the same figures.

use super::{
    dice::Dice,
    texts::{BROADCASTS, FEEDBACK, RELEASES},
};

/// The length of the past: eighteen weeks.
pub const DAYS: u32 = 126;
const MINUTES_OF_DAY: u32 = 24 * 60;
/// Castings that the welcome gift pays for.
const GIFT_CASTINGS: u32 = 3;
/// Castings that each package of the price list pays for, and how many of a hundred buyers choose it.
const PACKAGES: [(u32, u32); 4] = [(6, 55), (33, 30), (78, 11), (150, 4)];
/// Minutes that a day's activity begins at, more often in the evening.
const HOURS: [u32; 16] = [8, 9, 10, 12, 12, 13, 15, 17, 18, 19, 20, 20, 21, 21, 22, 23];

/// The fate of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderEnding {
    Paid,
    /// Paid, but the provider's message is lost, so that a query finds the payment.
    MessageLost,
    Abandoned,
}

/// An action, of the person with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    SignUp(usize),
    Buy {
        person: usize,
        /// The number of the purchase.
        purchase: usize,
        package: usize,
        ending: OrderEnding,
    },
    Refund {
        purchase: usize,
    },
    /// An operator decides about the order if it is in review.
    Settle {
        purchase: usize,
    },
    Cast {
        person: usize,
        number: usize,
    },
    /// A text that moderation refuses.
    Offend {
        person: usize,
        number: usize,
    },
    Feedback {
        person: usize,
        number: usize,
    },
    Grant {
        person: usize,
        number: usize,
    },
    /// Suspends the person, for a week or for good.
    Suspend {
        person: usize,
        number: usize,
    },
    Leave(usize),
    Broadcast(usize),
    Publish(usize),
    ForgeCallback,
}

impl Act {
    /// Returns the order of the actions of one moment: what others need comes first.
    pub const fn stage(self) -> u8 {
        match self {
            Self::SignUp(_) | Self::Broadcast(_) | Self::Publish(_) => 0,
            Self::Buy { .. } | Self::Refund { .. } | Self::Settle { .. } | Self::ForgeCallback => 1,
            Self::Grant { .. } => 2,
            Self::Cast { .. } => 3,
            Self::Offend { .. } | Self::Feedback { .. } | Self::Suspend { .. } => 4,
            Self::Leave(_) => 5,
        }
    }
}

/// An action and the minutes from it to the end of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedAct {
    pub minutes_ago: u32,
    pub act: Act,
}

/// The numbers of things planned so far.
struct Planner {
    dice: Dice,
    acts: Vec<PlannedAct>,
    /// The minute of the last day at which the past ends.
    end: u32,
    people: usize,
    purchases: usize,
    castings: usize,
}

/// Returns the actions, oldest first. `minute_of_day` is the local time at which the past ends.
pub fn plan(minute_of_day: u32) -> Vec<PlannedAct> {
    let mut planner = Planner {
        dice: Dice::new(20_260_101),
        acts: Vec::new(),
        end: minute_of_day,
        people: 0,
        purchases: 0,
        castings: 0,
    };
    for day in 0..=DAYS {
        planner.plan_sign_ups(day);
    }
    planner.plan_operators();
    planner.plan_last_hour();
    let mut acts = planner.acts;
    acts.sort_by_key(|planned| (u32::MAX - planned.minutes_ago, planned.act.stage()));
    acts
}

impl Planner {
    /// Adds an action at a minute of a day. An action after the end is left out.
    fn add(&mut self, day: u32, minute: u32, act: Act) {
        let at = day * MINUTES_OF_DAY + minute;
        if let Some(minutes_ago) = (DAYS * MINUTES_OF_DAY + self.end).checked_sub(at) {
            self.acts.push(PlannedAct { minutes_ago, act });
        }
    }

    fn minute(&mut self) -> u32 {
        self.dice.pick(&HOURS, 20) * 60 + self.dice.below(60)
    }

    fn plan_sign_ups(&mut self, day: u32) {
        // More each month, more at weekends, and two campaigns.
        let weekend = u32::from(day % 7 >= 5);
        let campaign = if matches!(day, 44..=47 | 95..=98) { 4 } else { 0 };
        let count = if day == 0 { 5 } else { 1 + day / 35 + weekend + self.dice.below(2) + campaign };
        for _ in 0..count {
            let person = self.people;
            self.people += 1;
            // The first ones come in order, so that their ids are known.
            let in_order = 9 * 60 + u32::try_from(10 * person).unwrap_or(0);
            let minute = if day == 0 { in_order } else { self.minute() };
            self.add(day, minute, Act::SignUp(person));
            self.plan_life(person, day, minute);
        }
    }

    /// Plans what a person does from their first day on.
    fn plan_life(&mut self, person: usize, first_day: u32, first_minute: u32) {
        // Some come daily, some weekly, most a few times.
        let (gap, lasting) = match self.dice.below(100) {
            _ if person < 5 => (2, 97),
            0..=11 => (1, 97),
            12..=44 => (5, 88),
            _ => (3, 76),
        };
        let (mut day, mut minute, mut castings_left) = (first_day, first_minute + 2, GIFT_CASTINGS);
        loop {
            for _ in 0..=self.dice.below(3) {
                if castings_left == 0 {
                    castings_left = self.plan_purchase(person, day, minute);
                    minute += 4;
                }
                if castings_left > 0 {
                    self.add(day, minute, Act::Cast { person, number: self.castings });
                    self.castings += 1;
                    castings_left -= 1;
                    minute += 3 + self.dice.below(10);
                }
            }
            self.plan_aside(person, day, minute);
            // The first five persons stay, because the printed commands and the tests use the first.
            if person >= 5 && (castings_left == 0 || !self.dice.chance(lasting)) {
                break;
            }
            day += 1 + self.dice.below(2 * gap);
            if day > DAYS {
                return;
            }
            minute = self.minute();
        }
        match self.dice.below(100) {
            0..=2 => self.add(day + 2, 600, Act::Leave(person)),
            3..=5 => {
                self.add(day + 1, 690, Act::Offend { person, number: day as usize });
                self.add(day + 1, 720, Act::Suspend { person, number: day as usize });
            }
            _ => {}
        }
    }

    /// Plans a purchase and returns the castings that it pays for.
    fn plan_purchase(&mut self, person: usize, day: u32, minute: u32) -> u32 {
        if person >= 5 && !self.dice.chance(75) {
            return 0;
        }
        let mut choice = self.dice.below(100);
        let package = PACKAGES.iter().position(|(_, share)| {
            let is_chosen = choice < *share;
            choice = choice.saturating_sub(*share);
            is_chosen
        });
        let package = package.unwrap_or(0);
        let ending = match self.dice.below(100) {
            0..=11 => OrderEnding::Abandoned,
            12..=15 => OrderEnding::MessageLost,
            _ => OrderEnding::Paid,
        };
        let purchase = self.purchases;
        self.purchases += 1;
        self.add(day, minute, Act::Buy { person, purchase, package, ending });
        if ending != OrderEnding::Paid {
            return 0;
        }
        if self.dice.chance(14) {
            // Soon enough to find the coins, or so late that they are spent.
            let after = if self.dice.chance(50) { 1 } else { 27 };
            self.add(day + after, 630 + minute % 300, Act::Refund { purchase });
            self.add(day + after + 3, 900, Act::Settle { purchase });
        }
        PACKAGES[package].0
    }

    /// Plans what happens beside castings.
    fn plan_aside(&mut self, person: usize, day: u32, minute: u32) {
        let number = self.acts.len();
        if self.dice.chance(2) {
            self.add(day, minute + 1, Act::Offend { person, number });
        }
        if self.dice.chance(2) {
            self.add(day, minute + 2, Act::Feedback { person, number: number % FEEDBACK.len() });
        }
        if self.dice.chance(1) {
            self.add(day + 1, 660, Act::Grant { person, number });
        }
    }

    fn plan_operators(&mut self) {
        let spread = |index: usize, count: usize| {
            3 + u32::try_from(index).unwrap_or(0) * (DAYS - 6) / u32::try_from(count).unwrap_or(1)
        };
        for index in 0..BROADCASTS.len() {
            self.add(spread(index, BROADCASTS.len()), 570, Act::Broadcast(index));
        }
        for index in 0..RELEASES.len() {
            self.add(spread(index, RELEASES.len()) + 2, 960, Act::Publish(index));
        }
        for day in [30, 77, 119] {
            self.add(day, 200, Act::ForgeCallback);
        }
    }

    /// Plans the last hour, so that the lists show something new at any time of the day.
    fn plan_last_hour(&mut self) {
        for (minutes_ago, person) in [(52, 0), (41, 3), (33, 1), (18, 4), (12, 2), (6, 0)] {
            self.acts.push(PlannedAct { minutes_ago, act: Act::Cast { person, number: self.castings } });
            self.castings += 1;
        }
        for (minutes_ago, person, package, ending) in
            [(47, 1, 1, OrderEnding::Paid), (21, 4, 0, OrderEnding::Abandoned), (9, 2, 2, OrderEnding::Paid)]
        {
            let act = Act::Buy { person, purchase: self.purchases, package, ending };
            self.acts.push(PlannedAct { minutes_ago, act });
            self.purchases += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_same_each_time_and_oldest_first() {
        let acts = plan(12 * 60);
        assert_eq!(acts, plan(12 * 60));
        assert!(acts.is_sorted_by_key(|planned| u32::MAX - planned.minutes_ago));
        let count = |is_counted: fn(&Act) -> bool| acts.iter().filter(|planned| is_counted(&planned.act)).count();
        assert!((300..600).contains(&count(|act| matches!(act, Act::SignUp(_)))));
        assert!((1500..6000).contains(&count(|act| matches!(act, Act::Cast { .. }))));
        assert!(count(|act| matches!(act, Act::Refund { .. })) > 5);
    }

    #[test]
    fn nobody_acts_before_their_sign_up_or_after_leaving() {
        let mut present = std::collections::BTreeMap::new();
        for PlannedAct { act, .. } in plan(0) {
            match act {
                Act::SignUp(person) => assert_eq!(present.insert(person, true), None),
                Act::Leave(person) => assert_eq!(present.insert(person, false), Some(true)),
                Act::Cast { person, .. } | Act::Buy { person, .. } | Act::Offend { person, .. } => {
                    assert_eq!(present.get(&person), Some(&true), "{act:?}");
                }
                _ => {}
            }
        }
    }
}
