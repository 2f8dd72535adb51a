//! Describes charts and selected texts to the offline interpreter as plain data.
//!
//! Providers do not know this module. Terms keep the names that they have in the API.

use super::{
    Branch, BranchState, CalendarMoment, Chart, ChartLine, LineNature, SelectedText, StemBranch, TextSelection,
};
use super::{ChangeRelation, ClashEffect, LineRole, Progress};
use crate::{
    domain::divination::hexagram::{Hexagram, LineClassic},
    providers::llm::builtin::{
        BecomesFacts, ChartFacts, ClassicFacts, ClassicText, LineFacts, MomentFacts, NatureFacts, StateFacts,
    },
    types::Locale,
};

impl TextSelection {
    pub fn described(&self, locale: Locale) -> ClassicFacts {
        let texts = self.texts.iter().map(|text| text.described(locale)).collect();
        ClassicFacts { rule: Some(self.rule.name()), texts }
    }

    /// Describes the judgement alone, for a cast whose changing lines are unknown.
    pub fn described_judgement(primary: Hexagram, locale: Locale) -> ClassicFacts {
        let judgement = SelectedText { is_main: true, ..SelectedText::judgement(primary) };
        ClassicFacts { rule: None, texts: vec![judgement.described(locale)] }
    }
}

impl SelectedText {
    fn described(self, locale: Locale) -> ClassicText {
        ClassicText {
            hexagram: self.hexagram.number(),
            chinese_name: self.hexagram.chinese_name(),
            english_name: self.hexagram.english_name(),
            label: self.line_classic().map(LineClassic::label),
            position: self.position,
            is_main: self.is_main,
            text: self.text().simplified,
            plain: self.plain(locale),
        }
    }
}

impl Chart {
    pub fn described(&self) -> ChartFacts {
        ChartFacts {
            moment: self.moment.as_ref().map(CalendarMoment::described),
            palace: self.palace.trigram.chinese_name(),
            lines: self.lines.iter().map(ChartLine::described).collect(),
        }
    }
}

impl CalendarMoment {
    fn described(&self) -> MomentFacts {
        let pillars = [self.pillars.year, self.pillars.month, self.pillars.day, self.pillars.hour];
        MomentFacts {
            local: self.local.to_string().chars().take(16).collect::<String>().replace('T', " "),
            pillars: pillars.map(|pillar: StemBranch| pillar.to_string()),
            void: self.void.map(Branch::name),
        }
    }
}

impl ChartLine {
    fn described(&self) -> LineFacts {
        LineFacts {
            position: self.position,
            nature: self.nature.described(),
            role: self.role.map(LineRole::name),
            state: self.state.map(BranchState::described),
            clash_effect: self.clash_effect.map(ClashEffect::name),
            becomes: self.becomes.map(|becomes| BecomesFacts {
                nature: becomes.nature.described(),
                relation: ChangeRelation::name(becomes.relation),
                progress: becomes.progress.map(Progress::name),
            }),
        }
    }
}

impl LineNature {
    fn described(self) -> NatureFacts {
        NatureFacts { kin: self.kin.name(), branch: self.branch.name(), element: self.element.name() }
    }
}

impl BranchState {
    fn described(self) -> StateFacts {
        StateFacts {
            strength: self.strength.name(),
            is_void: self.void,
            is_month_broken: self.month_break,
            day_effect: self.day_effect.name(),
        }
    }
}
