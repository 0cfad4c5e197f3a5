//! The summary of a test run. CI reads its last line, `<n> passed, <n> failed`.

use std::fmt;
use std::time::Duration;

use super::layer::Layer;
use super::slowest::Durations;
use super::tally::Tally;

/// The result of a layer.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The tests ran. `problems` are failures other than failed tests.
    Ran { tally: Tally, problems: Vec<String>, duration: Duration },
    /// This machine or user cannot run it.
    CannotRun(String),
    /// Its requirements could not be built or installed.
    SetUpFailed(String),
}

/// The results of a whole run.
#[derive(Debug)]
pub(crate) struct Summary {
    /// The failed steps of lint.
    pub(crate) lint: Vec<&'static str>,
    pub(crate) layers: Vec<(Layer, Ending)>,
    pub(crate) durations: Durations,
    /// Whether a layer that cannot run is a failure: in CI, and if it was requested by name.
    pub(crate) all_must_run: bool,
}

impl Ending {
    fn tally(&self) -> Tally {
        match self {
            Self::Ran { tally, .. } => *tally,
            Self::CannotRun(_) | Self::SetUpFailed(_) => Tally::default(),
        }
    }
}

impl Summary {
    fn passed(&self) -> usize {
        self.layers.iter().map(|(_, ending)| ending.tally().passed).sum()
    }

    /// The number of failures: failed and ignored tests, and all other failures.
    pub(crate) fn failed(&self) -> usize {
        let tests = self.layers.iter().map(|(_, ending)| ending.tally().failed + ending.tally().ignored);
        tests.sum::<usize>() + self.other_failures().len()
    }

    /// One line per failure that is not a failed test.
    fn other_failures(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.lint.iter().map(|step| format!("lint: {step}")).collect();
        for (layer, ending) in &self.layers {
            match ending {
                Ending::Ran { problems, .. } => {
                    lines.extend(problems.iter().map(|problem| format!("{layer}: {problem}")));
                }
                Ending::CannotRun(reason) if self.all_must_run => {
                    lines.push(format!("{layer}: cannot run here: {reason}"));
                }
                Ending::CannotRun(_) => {}
                Ending::SetUpFailed(reason) => lines.push(format!("{layer}: {reason}")),
            }
        }
        lines
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{:<8} {:>7} {:>7} {:>8} {:>8}", "layer", "passed", "failed", "ignored", "seconds")?;
        for (layer, ending) in &self.layers {
            match ending {
                Ending::Ran { tally: Tally { passed, failed, ignored }, duration, .. } => {
                    let seconds = duration.as_secs_f64();
                    writeln!(out, "{layer:<8} {passed:>7} {failed:>7} {ignored:>8} {seconds:>8.1}")?;
                }
                Ending::CannotRun(reason) => writeln!(out, "{layer:<8} not run: {reason}")?,
                Ending::SetUpFailed(_) => writeln!(out, "{layer:<8} not run: set-up failed")?,
            }
        }
        let slowest = self.durations.to_string();
        if !slowest.is_empty() {
            write!(out, "slowest test programs\n{slowest}")?;
        }
        if self.layers.iter().any(|(_, ending)| ending.tally().ignored > 0) {
            writeln!(out, "ignored tests count as failed")?;
        }
        for failure in self.other_failures() {
            writeln!(out, "failed: {failure}")?;
        }
        writeln!(out, "{} passed, {} failed", self.passed(), self.failed())
    }
}

#[cfg(test)]
mod tests;
