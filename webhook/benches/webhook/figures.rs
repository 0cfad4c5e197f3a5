//! Figures: the resources of a process according to the kernel, and the table.

use std::fmt;
use std::fs;
use std::time::Duration;

/// The resources that a process uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// Resident memory in MB of 1,000,000 bytes, and the anonymous part of it.
    pub(crate) resident: f64,
    pub(crate) own: f64,
    /// Since its start: CPU time, and time in the run queue.
    pub(crate) ran: Duration,
    pub(crate) waited: Duration,
}

impl Usage {
    pub(crate) fn of(process: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let memory = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
            kibibytes * 1024.0 / 1e6
        };
        let (mut ran, mut waited) = (Duration::ZERO, Duration::ZERO);
        for thread in fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten() {
            // The thread may have ended.
            let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) else { continue };
            let mut nanoseconds = text.split(' ').map_while(|field| field.parse().ok());
            ran += Duration::from_nanos(nanoseconds.next().unwrap());
            waited += Duration::from_nanos(nanoseconds.next().unwrap());
        }
        Self { resident: memory("VmRSS:"), own: memory("RssAnon:"), ran, waited }
    }
}

/// Time stolen by the hypervisor since boot. Zero on real hardware.
pub(crate) fn stolen() -> Duration {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let first = text.lines().next().unwrap();
    let hundredths: u64 = first.split_whitespace().nth(8).unwrap().parse().unwrap();
    Duration::from_millis(hundredths * 10)
}

/// The upper or lower limit of a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    bound: f64,
    is_most: bool,
    text: &'static str,
}

impl Budget {
    pub(crate) const fn at_most(bound: f64, text: &'static str) -> Self {
        Self { bound, is_most: true, text }
    }

    pub(crate) const fn at_least(bound: f64, text: &'static str) -> Self {
        Self { bound, is_most: false, text }
    }

    fn is_met(self, value: f64) -> bool {
        if self.is_most { value <= self.bound } else { value >= self.bound }
    }
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Line {
    what: String,
    figures: Option<Figures>,
}

#[derive(Debug)]
struct Figures {
    webhook: f64,
    istiod: Option<f64>,
    unit: &'static str,
    /// How many times better the webhook is.
    ratio: Option<f64>,
    budget: Option<Budget>,
}

impl Line {
    pub(crate) fn heading(what: String) -> Self {
        Self { what, figures: None }
    }

    /// A figure of which less is better.
    pub(crate) fn lower(
        what: impl Into<String>,
        webhook: f64,
        istiod: Option<f64>,
        unit: &'static str,
    ) -> Self {
        let ratio = istiod.map(|istiod| istiod / webhook);
        Self { what: what.into(), figures: Some(Figures { webhook, istiod, unit, ratio, budget: None }) }
    }

    /// A figure of which more is better.
    pub(crate) fn higher(
        what: impl Into<String>,
        webhook: f64,
        istiod: Option<f64>,
        unit: &'static str,
    ) -> Self {
        let ratio = istiod.map(|istiod| webhook / istiod);
        Self { what: what.into(), figures: Some(Figures { webhook, istiod, unit, ratio, budget: None }) }
    }

    pub(crate) fn without_ratio(mut self) -> Self {
        if let Some(figures) = &mut self.figures {
            figures.ratio = None;
        }
        self
    }

    pub(crate) fn budget(mut self, budget: Budget) -> Self {
        if let Some(figures) = &mut self.figures {
            figures.budget = Some(budget);
        }
        self
    }
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Figures { webhook, istiod, unit, ratio, budget }) = &self.figures else {
            return write!(out, "{:<44}{:>12}{:>12}{:>10}", self.what, "webhook", "istiod", "ratio");
        };
        let figure = |value: f64| match value {
            value if value < 10.0 => format!("{value:.2} {unit}"),
            value if value < 100.0 => format!("{value:.1} {unit}"),
            value => format!("{value:.0} {unit}"),
        };
        let istiod = istiod.map(figure).unwrap_or_default();
        let ratio = ratio.map(|ratio| format!("x {ratio:.1}")).unwrap_or_default();
        write!(out, "{:<44}{:>12}{istiod:>12}{ratio:>10}", self.what, figure(*webhook))?;
        match budget {
            Some(budget) => {
                let met = if budget.is_met(*webhook) { "met" } else { "MISSED" };
                write!(out, "   {:<10}{met}", budget.text)
            }
            None => Ok(()),
        }
    }
}
