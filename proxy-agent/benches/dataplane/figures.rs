//! Medians and the table.

use std::time::Duration;

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// The median, and the largest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) most: f64,
}

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Some(Self { median: *values.get(values.len() / 2)?, most: *values.last()? })
    }
}

/// A figure of one program, with its unit.
pub(crate) fn show(value: Option<f64>, unit: &str) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value < 10.0 => format!("{value:.2} {unit}"),
        Some(value) if value < 1000.0 => format!("{value:.1} {unit}"),
        Some(value) => format!("{value:.0} {unit}"),
    }
}

/// A line of the table: the agent, kube-proxy at its defaults, and with `minSyncPeriod: 1ms`.
pub(crate) struct Line {
    pub(crate) what: String,
    pub(crate) values: [Option<f64>; 3],
    pub(crate) unit: &'static str,
    /// The wanted ratio of agent and kube-proxy, and whether less is better.
    pub(crate) wanted: Option<(f64, Better)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    Less,
    More,
}

impl Line {
    pub(crate) fn header() -> String {
        format!(
            "{:<52} {:>12} {:>12} {:>14} {:>10} {:>10}",
            "", "agent", "kube-proxy", "minSync 1ms", "ratio", "wanted"
        )
    }

    pub(crate) fn text(&self) -> String {
        let [agent, default, eager] = self.values;
        let ratio = agent.zip(default.or(eager)).map(|(agent, other)| agent / other);
        let shown = ratio.map(|ratio| match ratio {
            _ if ratio >= 0.5 => format!("{ratio:.2}"),
            _ => format!("1/{:.0}", 1.0 / ratio),
        });
        let wanted = self.wanted.map(|(wanted, better)| {
            let kept = ratio
                .is_some_and(|ratio| if better == Better::Less { ratio <= wanted } else { ratio >= wanted });
            let wanted = if wanted < 0.5 { format!("1/{:.0}", 1.0 / wanted) } else { format!("{wanted:.2}") };
            format!("{wanted}{}", if kept { "" } else { " MISSED" })
        });
        format!(
            "{:<52} {:>12} {:>12} {:>14} {:>10} {:>10}",
            self.what,
            show(agent, self.unit),
            show(default, self.unit),
            show(eager, self.unit),
            shown.unwrap_or_default(),
            wanted.unwrap_or_default()
        )
    }
}
