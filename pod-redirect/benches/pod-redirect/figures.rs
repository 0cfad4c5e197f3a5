//! Percentiles and the table.

use std::fmt;
use std::time::Duration;

pub(crate) const MEGABYTE: f64 = 1e6;

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) p99: f64,
}

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |percent: usize| values[(values.len() * percent).div_ceil(100) - 1];
        Self { median: at(50), p99: at(99) }
    }
}

/// A row of the table: one figure of each program, of which less is better.
pub(crate) struct Line {
    what: &'static str,
    values: [Option<f64>; 3],
    unit: &'static str,
    /// The most that the first program may have.
    budget: Option<f64>,
}

impl Line {
    pub(crate) fn header([ours, iptables, nftables]: [&str; 3]) -> String {
        format!("{:<36}{ours:>14}{iptables:>16}{nftables:>16}   budget", "")
    }

    pub(crate) fn new(what: &'static str, values: [Option<f64>; 3], unit: &'static str) -> Self {
        Self { what, values, unit, budget: None }
    }

    pub(crate) fn budget(mut self, most: f64) -> Self {
        self.budget = Some(most);
        self
    }
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [ours, iptables, nftables] = self.values.map(|value| match value {
            Some(value) if value < 10.0 => format!("{value:.2} {}", self.unit),
            Some(value) => format!("{value:.1} {}", self.unit),
            None => "-".to_owned(),
        });
        write!(out, "{:<36}{ours:>14}{iptables:>16}{nftables:>16}", self.what)?;
        let Some(most) = self.budget else { return Ok(()) };
        let met = if self.values[0].is_some_and(|value| value <= most) { "met" } else { "MISSED" };
        write!(out, "   {most} {} {met}", self.unit)
    }
}
