//! Which actions have to wait because they failed, or because the cluster that is known does not have yet what they made. The others
//! go on: one that is refused for good holds up nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use isp_plan::Action;
use tokio::time::Instant;

use crate::backoff::Backoff;

/// How long the watch may take to tell of what was made. It is there by then or has gone again, and is made again.
const UNTIL_TOLD: Duration = Duration::from_secs(2);

/// The actions that wait, by kind and target.
#[derive(Debug, Default)]
pub(crate) struct Holds(BTreeMap<String, Hold>);

/// What ends a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Only time.
    Time,
    /// Also news of the object, of which this version is known, if any: the API server has another one.
    News(Option<String>),
}

#[derive(Debug)]
struct Hold {
    backoff: Backoff,
    end: Instant,
    until: Until,
    reason: String,
}

impl Holds {
    /// It failed.
    pub(crate) fn fail(&mut self, action: &Action, until: Until, reason: &str, now: Instant) {
        let hold = self.0.entry(action.to_string()).or_insert_with(|| Hold {
            backoff: Backoff::default(),
            end: now,
            until: Until::Time,
            reason: String::new(),
        });
        hold.backoff.fail();
        hold.end = now + hold.backoff.delay();
        hold.until = until;
        reason.clone_into(&mut hold.reason);
    }

    /// It was carried out, and what it made is not known yet: until then it would be planned again.
    pub(crate) fn make(&mut self, action: &Action, now: Instant) {
        let (backoff, end) = (Backoff::default(), now + UNTIL_TOLD);
        let hold = Hold { backoff, end, until: Until::News(None), reason: String::new() };
        self.0.insert(action.to_string(), hold);
    }

    /// It was carried out.
    pub(crate) fn succeed(&mut self, action: &Action) {
        self.0.remove(&action.to_string());
    }

    /// Whether it failed before.
    pub(crate) fn has_failed(&self, action: &Action) -> bool {
        self.0.get(&action.to_string()).is_some_and(|hold| hold.backoff.has_failed())
    }

    /// Whether it may be tried now; `version` is what is known of its object.
    pub(crate) fn allow<'a>(
        &self,
        action: &Action,
        version: impl FnOnce() -> Option<&'a str>,
        now: Instant,
    ) -> bool {
        let Some(hold) = self.0.get(&action.to_string()) else { return true };
        let news = || matches!(&hold.until, Until::News(known) if known.as_deref() != version());
        hold.end <= now || news()
    }

    /// Forgets failures of actions that are no longer planned.
    pub(crate) fn retain(&mut self, planned: &[Action]) {
        let planned: BTreeSet<String> = planned.iter().map(ToString::to_string).collect();
        self.0.retain(|action, _| planned.contains(action));
    }

    /// When the next wait ends of those that had not ended at the last plan, if there was one. It may be over by now: only a plan
    /// lets an action be tried again.
    pub(crate) fn next(&self, planned: Option<Instant>) -> Option<Instant> {
        self.0.values().map(|hold| hold.end).filter(|end| planned.is_none_or(|planned| *end > planned)).min()
    }

    /// Whether one waits for news of its object.
    pub(crate) fn await_news(&self) -> bool {
        self.0.values().any(|hold| hold.until != Until::Time)
    }

    /// What failed, and why.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = (&str, &str)> {
        let failed = self.0.iter().filter(|(_, hold)| hold.backoff.has_failed());
        failed.map(|(action, hold)| (action.as_str(), hold.reason.as_str()))
    }
}

#[cfg(test)]
mod tests;
