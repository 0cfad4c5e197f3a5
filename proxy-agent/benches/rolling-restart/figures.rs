//! The results of clients, and the table of them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// A request that took this long has lost its first packet.
const RESENT: f64 = 1000.0;

/// The results of one client, or of several.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    sent: usize,
    /// The number of failed requests, by reason.
    failed: BTreeMap<String, usize>,
    /// Answered after the first packet was resent.
    resent: usize,
}

impl Tally {
    /// Parses the output of `echo ask`. The last line may be incomplete.
    pub(crate) fn read(printed: &str) -> Self {
        let mut tally = Self::default();
        for line in printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            tally.sent += 1;
            if let Some(reason) = line["error"].as_str() {
                *tally.failed.entry(reason.to_owned()).or_default() += 1;
            } else if line["elapsedMs"].as_f64() > Some(RESENT) {
                tally.resent += 1;
            }
        }
        tally
    }

    pub(crate) fn failed(&self) -> usize {
        self.failed.values().sum()
    }

    fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.resent += other.resent;
        for (reason, count) in &other.failed {
            *self.failed.entry(reason.clone()).or_default() += count;
        }
    }
}

/// The results by who served the requests.
pub(crate) struct Figures {
    restarts: usize,
    pods: usize,
    took: Duration,
    tallies: Vec<(&'static str, Tally)>,
}

impl Figures {
    pub(crate) fn new(restarts: usize, pods: usize, took: Duration) -> Self {
        Self { restarts, pods, took, tallies: Vec::new() }
    }

    pub(crate) fn add(&mut self, who: &'static str, tally: &Tally) {
        match self.tallies.iter_mut().find(|(known, _)| *known == who) {
            Some((_, known)) => known.add(tally),
            None => self.tallies.push((who, tally.clone())),
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { restarts, pods, took, tallies } = self;
        writeln!(f, "{restarts} rolling restarts of {pods} pods in {:.0} s", took.as_secs_f32())?;
        writeln!(
            f,
            "{:<12} {:>9} {:>7} {:>12} {:>16}  reasons",
            "served by", "requests", "failed", "per restart", "answered > 1 s"
        )?;
        for (who, tally) in tallies {
            let (sent, failed, resent) = (tally.sent, tally.failed(), tally.resent);
            #[allow(clippy::cast_precision_loss, reason = "a few thousand requests")]
            let each = failed as f64 / *restarts as f64;
            let reasons: Vec<_> =
                tally.failed.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
            writeln!(f, "{who:<12} {sent:>9} {failed:>7} {each:>12.1} {resent:>16}  {}", reasons.join(", "))?;
        }
        Ok(())
    }
}
