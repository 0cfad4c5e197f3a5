//! Ports and ranges of ports.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// The ports of a redirect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ports {
    /// All of them.
    #[default]
    All,
    /// These. An empty list has no port, and is refused.
    Some(Vec<PortRange>),
}

/// Ports from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortRange {
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

impl PortRange {
    /// One port.
    pub const fn one(port: u16) -> Self {
        Self { first: port, last: port }
    }

    /// Whether the port is one of these.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

/// Sorted ranges of the same ports that neither overlap nor touch.
pub(super) fn merged(ranges: &[PortRange]) -> Vec<PortRange> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable();
    let mut out: Vec<PortRange> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match out.last_mut() {
            Some(before) if range.first <= before.last.saturating_add(1) => {
                before.last = before.last.max(range.last);
            }
            _ => out.push(range),
        }
    }
    out
}

impl fmt::Display for PortRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(out, "{}", self.first)
        } else {
            write!(out, "{}-{}", self.first, self.last)
        }
    }
}

/// Text that is neither a port nor a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("write a port such as 8080, or a range such as 9000-9100")]
pub struct NoPortRange;

impl FromStr for PortRange {
    type Err = NoPortRange;

    fn from_str(text: &str) -> Result<Self, NoPortRange> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.parse().map_err(|_| NoPortRange);
        Ok(Self { first: port(first)?, last: port(last)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_overlap_or_touch_become_one() {
        let ranges = ["80", "9000-9100", "81-90", "9050-9200", "65535", "65000-65535"];
        let ranges: Vec<PortRange> = ranges.iter().map(|text| text.parse().unwrap()).collect();
        let texts: Vec<String> = merged(&ranges).iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["80-90", "9000-9200", "65000-65535"]);
    }
}
