//! Describes charts and selected texts to the offline interpreter as plain data.
//!
//! Providers do not know this module. Terms keep the names that they have in the API.

use super::{
    ActingTrigram, BodyAndUse, BodyRelation, BranchState, CalendarMoment, ChangeRelation, ChangedLine, Chart,
    ChartLine, ClashEffect, Echo, GrowthStage, Half, HiddenLine, LineNature, LinePattern, LineRole, Progress,
    SelectedText, Spirit, StemBranch, TextSelection, najia,
};
use crate::{
    Locale,
    hexagram::{Hexagram, LineClassic, Trigram},
    interpreter::{
        ActingFacts, BecomesFacts, BodyAndUseFacts, ChartFacts, ClassicFacts, ClassicText, EchoFacts, HiddenFacts,
        LineFacts, MomentFacts, MonthDay, NatureFacts, StateFacts, TrigramFacts,
    },
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
            moment: self.moment.as_ref().and_then(CalendarMoment::described),
            palace: self.palace.trigram.chinese_name(),
            element: self.palace.element,
            stage: self.palace.stage.name(),
            pattern: self.pattern.map(LinePattern::name),
            relating_pattern: self.relating_pattern.map(LinePattern::name),
            echoes: self.echoes.iter().map(|echo| echo.described()).collect(),
            lines: self.lines.iter().map(ChartLine::described).collect(),
        }
    }
}

impl Echo {
    fn described(self) -> EchoFacts {
        EchoFacts { is_upper: self.half == Half::Upper, kind: self.kind.name() }
    }
}

impl CalendarMoment {
    fn described(&self) -> Option<MomentFacts> {
        let pillars = [self.pillars.year, self.pillars.month, self.pillars.day, self.pillars.hour];
        Some(MomentFacts {
            local: self.local.to_string().chars().take(16).collect::<String>().replace('T', " "),
            pillars: pillars.map(|pillar: StemBranch| pillar.to_string()),
            void: self.void,
            month: self.pillars.month.branch(),
            day: self.pillars.day.branch(),
            next_days: self.next_days()?.map(|date| MonthDay { month: date.month(), day: date.day() }),
        })
    }
}

impl ChartLine {
    fn described(&self) -> LineFacts {
        LineFacts {
            position: self.position,
            nature: self.nature.described(),
            spirit: self.spirit.map(Spirit::name),
            role: self.role.map(LineRole::name),
            state: self.state.map(BranchState::described),
            clash_effect: self.clash_effect.map(ClashEffect::name),
            hidden: self.hidden.map(HiddenLine::described),
            becomes: self.becomes.map(ChangedLine::described),
        }
    }
}

impl HiddenLine {
    fn described(self) -> HiddenFacts {
        HiddenFacts { nature: self.nature.described(), state: self.state.map(BranchState::described) }
    }
}

impl ChangedLine {
    fn described(self) -> BecomesFacts {
        BecomesFacts {
            nature: self.nature.described(),
            state: self.state.map(BranchState::described),
            relation: ChangeRelation::name(self.relation),
            progress: self.progress.map(Progress::name),
            is_clash: self.clash,
            is_combination: self.combination,
        }
    }
}

impl BodyAndUse {
    pub fn described(&self) -> BodyAndUseFacts {
        BodyAndUseFacts {
            body: described_trigram(self.body.trigram),
            use_trigram: self.use_trigram.described(),
            nuclear: self.nuclear.map(ActingTrigram::described),
            changed: self.changed.described(),
        }
    }
}

impl ActingTrigram {
    fn described(self) -> ActingFacts {
        ActingFacts { trigram: described_trigram(self.trigram), relation: BodyRelation::name(self.relation) }
    }
}

fn described_trigram(trigram: Trigram) -> TrigramFacts {
    TrigramFacts { chinese_name: trigram.chinese_name(), pinyin: trigram.pinyin(), element: najia::element(trigram) }
}

impl LineNature {
    fn described(self) -> NatureFacts {
        NatureFacts { kin: self.kin.name(), branch: self.branch }
    }
}

impl BranchState {
    fn described(self) -> StateFacts {
        StateFacts {
            strength: self.strength.name(),
            is_void: self.void,
            is_month_broken: self.month_break,
            day_effect: self.day_effect.name(),
            is_day_combination: self.day_combination,
            growth_stage: self.growth_stage.map(GrowthStage::name),
        }
    }
}
