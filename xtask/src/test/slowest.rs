//! How long each test program took, from the output of `cargo test`.

use std::fmt;
use std::time::Duration;

/// How many programs a summary lists.
const LISTED: usize = 10;

/// Test programs with the duration of their tests.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    /// The program that runs.
    running: Option<String>,
    ended: Vec<(Duration, String)>,
}

impl Durations {
    /// Reads a line. Cargo announces each program, such as
    /// `     Running tests/api_plan/main.rs (target/debug/deps/api_plan-0123456789abcdef)`, and the
    /// program's result line ends with `finished in 1.50s`.
    pub(crate) fn add(&mut self, line: &str) {
        if let Some(program) = announced(line) {
            self.running = Some(program);
        }
        let seconds = line.strip_prefix("test result: ").and_then(|_| line.rsplit_once("finished in "));
        let seconds = seconds.and_then(|(_, seconds)| seconds.strip_suffix('s')?.parse().ok());
        if let (Some(seconds), Some(program)) = (seconds, self.running.take_if(|_| seconds.is_some())) {
            self.ended.push((Duration::from_secs_f64(seconds), program));
        }
    }

    /// Adds the programs of another run.
    pub(crate) fn append(&mut self, other: Self) {
        self.ended.extend(other.ended);
    }
}

/// The program that a line of cargo announces. A program of a crate's own code has the crate's
/// name.
fn announced(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(krate) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{krate} (examples in docs)"));
    }
    let (_, path) = line.strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once('(')?;
    let (name, _hash) = path.rsplit('/').next()?.rsplit_once('-')?;
    Some(name.to_owned())
}

impl fmt::Display for Durations {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut slowest: Vec<_> = self.ended.iter().collect();
        slowest.sort_by(|one, other| other.cmp(one));
        for (duration, program) in slowest.into_iter().take(LISTED) {
            writeln!(out, "{:>8.1} s  {program}", duration.as_secs_f64())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
