//! Actions on hold: those that failed, and those whose result has not yet reached the index. Other
//! actions proceed, so one permanently rejected action blocks nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use isp_plan::Action;
use tokio::time::Instant;

use crate::backoff::Backoff;

/// How long to wait for the watch to report a created object. If it is still absent after that, it
/// was deleted again, and the action is retried.
const UNTIL_TOLD: Duration = Duration::from_secs(2);

/// The actions on hold, by kind and target.
#[derive(Debug, Default)]
pub(crate) struct Holds(BTreeMap<String, Hold>);

/// The event that ends a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Only the timeout.
    Time,
    /// The timeout, or a resource version in the index that differs from this one. Used after a
    /// conflict or a create, when the API server has a newer version than the index.
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
    /// Records a failure.
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

    /// Records a success whose object is not in the index yet. Without the hold the action would be
    /// planned again.
    pub(crate) fn make(&mut self, action: &Action, now: Instant) {
        let (backoff, end) = (Backoff::default(), now + UNTIL_TOLD);
        let hold = Hold { backoff, end, until: Until::News(None), reason: String::new() };
        self.0.insert(action.to_string(), hold);
    }

    /// Records a success.
    pub(crate) fn succeed(&mut self, action: &Action) {
        self.0.remove(&action.to_string());
    }

    /// Whether the action's last attempt failed.
    pub(crate) fn has_failed(&self, action: &Action) -> bool {
        self.0.get(&action.to_string()).is_some_and(|hold| hold.backoff.has_failed())
    }

    /// Whether the action may be tried now. `version` returns the resource version of its target in
    /// the index.
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

    /// Drops holds of actions that are no longer planned.
    pub(crate) fn retain(&mut self, planned: &[Action]) {
        let planned: BTreeSet<String> = planned.iter().map(ToString::to_string).collect();
        self.0.retain(|action, _| planned.contains(action));
    }

    /// The earliest end of the holds that had not ended at the last plan, or of all holds if there
    /// was no plan. It may be in the past: only a new plan retries a held action.
    pub(crate) fn next(&self, planned: Option<Instant>) -> Option<Instant> {
        self.0.values().map(|hold| hold.end).filter(|end| planned.is_none_or(|planned| *end > planned)).min()
    }

    /// Whether any hold waits for a new resource version.
    pub(crate) fn await_news(&self) -> bool {
        self.0.values().any(|hold| hold.until != Until::Time)
    }

    /// The failed actions and the reasons.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = (&str, &str)> {
        let failed = self.0.iter().filter(|(_, hold)| hold.backoff.has_failed());
        failed.map(|(action, hold)| (action.as_str(), hold.reason.as_str()))
    }
}

#[cfg(test)]
mod tests;
