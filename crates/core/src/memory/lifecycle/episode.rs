//! Episodes: active, summarized, archived, by age alone.

use serde::{Deserialize, Serialize};

use super::{DAY, Event, LifecycleSettings, TransitionError, check_state};
use crate::MillisSinceEpoch;
use crate::memory::MemoryState;

/// The lifecycle fields of an episode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EpisodeLifecycle {
    pub state: MemoryState,
    /// The time of the episode, not of its recording.
    pub happened_at: MillisSinceEpoch,
    /// Whether a summary can replace the detail; without one the detail stays.
    pub has_summary: bool,
    /// Whether its facts and decisions were extracted; it is archived only after that.
    pub extracted: bool,
}

impl Default for EpisodeLifecycle {
    fn default() -> Self {
        Self {
            state: MemoryState::Active,
            happened_at: MillisSinceEpoch(0),
            has_summary: false,
            extracted: false,
        }
    }
}

impl EpisodeLifecycle {
    pub(super) fn after(
        &self,
        event: &Event,
        now: MillisSinceEpoch,
        numbers: &LifecycleSettings,
    ) -> Result<Self, TransitionError> {
        use MemoryState::{Active, Archived, Summarized};
        check_state("episode", self.state, &[Active, Summarized, Archived])?;
        if *event != Event::TimePassed {
            let why = "only time changes it".into();
            return Err(TransitionError { kind: "episode", state: self.state, why });
        }
        let age = now.0.saturating_sub(self.happened_at.0);
        let days = |days: u32| i64::from(days) * DAY;
        let mut episode = self.clone();
        // Active is "< 30 days" and archived "> 90 days": the thirtieth day is no longer active, the ninetieth not yet
        // archived. A clock that goes back changes nothing.
        if episode.state == Active && self.has_summary && age >= days(numbers.summarize_after_days)
        {
            episode.state = Summarized;
        }
        if episode.state == Summarized && self.extracted && age > days(numbers.archive_after_days) {
            episode.state = Archived;
        }
        Ok(episode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aged(
        days: i64,
        more: i64,
        from: &EpisodeLifecycle,
        numbers: &LifecycleSettings,
    ) -> MemoryState {
        let now = MillisSinceEpoch(days * DAY + more);
        from.after(&Event::TimePassed, now, numbers).expect("time passes").state
    }

    #[test]
    fn age_summarizes_and_archives() {
        use MemoryState::{Active, Archived, Summarized};
        let numbers = LifecycleSettings::default();
        let ready =
            EpisodeLifecycle { has_summary: true, extracted: true, ..EpisodeLifecycle::default() };
        for (days, more, expected) in [
            (0, 0, Active),
            (-40, 0, Active),
            (30, -1, Active),
            (30, 0, Summarized),
            (90, 0, Summarized),
            (90, 1, Archived),
            (i64::MAX / DAY, 0, Archived),
        ] {
            assert_eq!(aged(days, more, &ready, &numbers), expected, "{days} days {more}");
        }
        let archived = EpisodeLifecycle { state: Archived, ..ready.clone() };
        assert_eq!(aged(1, 0, &archived, &numbers), Archived);

        let sooner =
            LifecycleSettings { summarize_after_days: 7, archive_after_days: 20, ..numbers };
        assert_eq!(aged(7, 0, &ready, &sooner), Summarized);
        assert_eq!(aged(21, 0, &ready, &sooner), Archived);
    }

    #[test]
    fn detail_is_not_given_up_before_something_stands_for_it() {
        let numbers = LifecycleSettings::default();
        assert_eq!(aged(200, 0, &EpisodeLifecycle::default(), &numbers), MemoryState::Active);
        let summary = EpisodeLifecycle { has_summary: true, ..EpisodeLifecycle::default() };
        assert_eq!(aged(200, 0, &summary, &numbers), MemoryState::Summarized);
    }
}
