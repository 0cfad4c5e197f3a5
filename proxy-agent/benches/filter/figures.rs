//! Figures: medians, the resources of a process, and the table.

use std::fmt;
use std::fs;
use std::time::Duration;

/// Sorted durations.
#[derive(Debug, Clone)]
pub(crate) struct Sorted(Vec<f64>);

impl Sorted {
    /// In milliseconds.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    pub(crate) fn durations<'a>(values: impl IntoIterator<Item = &'a Duration>) -> Self {
        Self::of(values.into_iter().map(|value| milliseconds(*value)))
    }

    pub(crate) fn quantile(&self, part: f64) -> f64 {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a few thousand values"
        )]
        let index = ((self.0.len() - 1) as f64 * part).round() as usize;
        self.0[index]
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The resources that a process uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// In MB of 1,000,000 bytes: resident memory, its peak, and the private part of it.
    pub(crate) resident: f64,
    pub(crate) highest: f64,
    pub(crate) own: f64,
    /// CPU time in user and kernel mode since the start.
    pub(crate) processor: Duration,
}

impl Usage {
    pub(crate) fn of(process: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let memory = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            let kibibytes: f64 = line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap();
            kibibytes * 1024.0 / 1e6
        };
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        // The program's name may contain spaces; field 3 follows it. Ticks are hundredths of a
        // second.
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        let ticks = |field: usize| fields[field - 3].parse::<u64>().unwrap();
        Self {
            resident: memory("VmRSS"),
            highest: memory("VmHWM"),
            own: memory("RssAnon"),
            processor: Duration::from_millis((ticks(14) + ticks(15)) * 10),
        }
    }
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) what: String,
    pub(crate) direct: String,
    pub(crate) through: String,
    pub(crate) difference: String,
    /// The budget, and whether the figure is within it.
    pub(crate) budget: Option<(String, bool)>,
}

impl Line {
    pub(crate) fn heading(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            direct: "direct".to_owned(),
            through: "through".to_owned(),
            difference: String::new(),
            budget: None,
        }
    }

    /// Makes a row with two durations in milliseconds and their ratio.
    pub(crate) fn times(what: impl Into<String>, direct: f64, through: f64, budget: Option<f64>) -> Self {
        let times = through / direct;
        Self {
            what: what.into(),
            direct: format!("{direct:.1} ms"),
            through: format!("{through:.1} ms"),
            difference: format!("x {times:.2}"),
            budget: budget.map(|most| (format!("x {most}"), times <= most)),
        }
    }

    /// Makes a row about the agent alone.
    pub(crate) fn alone(what: impl Into<String>, value: String, budget: Option<(String, bool)>) -> Self {
        Self { what: what.into(), direct: String::new(), through: value, difference: String::new(), budget }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, direct, through, difference, budget } = self;
        write!(out, "{what:<58}{direct:>12}{through:>12}{difference:>12}")?;
        match budget {
            Some((budget, kept)) => write!(out, "   {budget:<8}{}", if *kept { "met" } else { "MISSED" }),
            None => Ok(()),
        }
    }
}
