//! Settings that cannot work, with the reason.
//!
//! A [`Problem`] names the [`Setting`], so the webhook can name the field of the API and the
//! program its option.

use std::fmt;

use ipnet::IpNet;
use thiserror::Error;

use super::{Exempt, Inbound, Mark, Outbound, PortRange, Ports, Routing, Settings, ports::merged};

/// One of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields of `Settings` have the documentation")]
pub enum Setting {
    InboundMethod,
    InboundPort,
    InboundPorts,
    InboundExceptPorts,
    OutboundPort,
    OutboundDestinations,
    OutboundPorts,
    OutboundExceptDestinations,
    OutboundExceptPorts,
    ExemptUids,
    ExemptGids,
    ExemptMarks,
    ExemptNetCls,
    ExemptCgroups,
    Mark,
    Table,
}

impl Setting {
    /// All settings, in the order in which they are written.
    pub const ALL: [Self; 16] = [
        Self::InboundMethod,
        Self::InboundPort,
        Self::InboundPorts,
        Self::InboundExceptPorts,
        Self::OutboundPort,
        Self::OutboundDestinations,
        Self::OutboundPorts,
        Self::OutboundExceptDestinations,
        Self::OutboundExceptPorts,
        Self::ExemptUids,
        Self::ExemptGids,
        Self::ExemptMarks,
        Self::ExemptNetCls,
        Self::ExemptCgroups,
        Self::Mark,
        Self::Table,
    ];

    /// The option of the command line.
    pub fn flag(self) -> &'static str {
        match self {
            Self::InboundMethod => "--inbound-method",
            Self::InboundPort => "--inbound-port",
            Self::InboundPorts => "--inbound-ports",
            Self::InboundExceptPorts => "--inbound-except-ports",
            Self::OutboundPort => "--outbound-port",
            Self::OutboundDestinations => "--outbound-destinations",
            Self::OutboundPorts => "--outbound-ports",
            Self::OutboundExceptDestinations => "--outbound-except-destinations",
            Self::OutboundExceptPorts => "--outbound-except-ports",
            Self::ExemptUids => "--exempt-uids",
            Self::ExemptGids => "--exempt-gids",
            Self::ExemptMarks => "--exempt-marks",
            Self::ExemptNetCls => "--exempt-net-cls",
            Self::ExemptCgroups => "--exempt-cgroups",
            Self::Mark => "--mark",
            Self::Table => "--table",
        }
    }
}

/// A setting that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}={value}: {reason}", setting.flag())]
pub struct Problem {
    /// The setting.
    pub setting: Setting,
    /// Its value, or the part of it that is wrong.
    pub value: String,
    /// Why it cannot work, and the way out.
    pub reason: String,
}

/// Ids of users and groups end here: the kernel reads the last number as "none".
const NO_ID: u32 = u32::MAX;
/// Istio's marks of packets in a pod.
const ISTIO_MARKS: [u32; 2] = [1337, 1338];
const ISTIO_TABLE: u32 = 133;
/// The tables that the kernel itself uses: unspecified, default, main, local.
const KERNEL_TABLES: [u32; 4] = [0, 253, 254, 255];
/// The kernel's limit of nested control groups in a match.
const DEEPEST_CGROUP: usize = 255;

const LOOPS: &str = "all outbound connections are redirected and no process is exempt, so the proxy's own \
    connections would come back to it until it fails: exempt the proxy by its UID, GID, mark or control group, \
    or redirect named destinations only";

impl Settings {
    /// Refuses settings that cannot work, with the first problem.
    pub fn check(&self) -> Result<(), Problem> {
        self.problems().into_iter().next().map_or(Ok(()), Err)
    }

    /// All problems of the settings.
    pub fn problems(&self) -> Vec<Problem> {
        let mut found = Found(Vec::new());
        let Self { inbound, outbound, exempt, routing } = self;
        if inbound.is_none() && outbound.is_none() {
            let reason = "nothing is redirected: set the port of the proxy for inbound connections, outbound \
                connections or both";
            found.add(Setting::InboundPort, "", reason);
        }
        if let Some(inbound) = inbound {
            found.inbound(inbound);
        }
        if let Some(outbound) = outbound {
            found.outbound(outbound, exempt);
        }
        found.exempt(exempt, routing.mark);
        found.routing(routing);
        found.0
    }
}

struct Found(Vec<Problem>);

impl Found {
    fn add(&mut self, setting: Setting, value: impl fmt::Display, reason: impl Into<String>) {
        self.0.push(Problem { setting, value: value.to_string(), reason: reason.into() });
    }

    fn inbound(&mut self, inbound: &Inbound) {
        let Inbound { method: _, port, ports, except_ports } = inbound;
        self.port(Setting::InboundPort, *port);
        self.ports(Setting::InboundPorts, *port, ports, except_ports);
        self.ranges(Setting::InboundExceptPorts, except_ports);
    }

    fn outbound(&mut self, outbound: &Outbound, exempt: &Exempt) {
        let Outbound { port, destinations, ports, except_destinations, except_ports } = outbound;
        self.port(Setting::OutboundPort, *port);
        self.ports(Setting::OutboundPorts, *port, ports, except_ports);
        self.ranges(Setting::OutboundExceptPorts, except_ports);
        let is_all = |range: &&IpNet| range.prefix_len() == 0;
        if let Some(all) = except_destinations.iter().find(is_all) {
            let reason =
                "nothing is left to redirect: name the destinations to except, or remove the redirect";
            self.add(Setting::OutboundExceptDestinations, all, reason);
        }
        let named = destinations.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        if exempt.is_empty() && (destinations.is_empty() || destinations.iter().any(|each| is_all(&each))) {
            self.add(Setting::OutboundDestinations, if named.is_empty() { "all" } else { &named }, LOOPS);
        }
    }

    fn port(&mut self, setting: Setting, port: u16) {
        if port == 0 {
            self.add(
                setting,
                port,
                "no program can listen on port 0: set the port that the proxy listens on",
            );
        }
    }

    fn ports(&mut self, setting: Setting, own: u16, ports: &Ports, except: &[PortRange]) {
        let Ports::Some(ranges) = ports else { return };
        if ranges.is_empty() {
            self.add(setting, "", "the list has no port: name at least one, or leave it out for all ports");
        }
        if let Some(range) = ranges.iter().find(|range| range.contains(own)) {
            let reason = format!("{own} is the port of the proxy itself: remove it from the list");
            self.add(setting, range, reason);
        }
        self.ranges(setting, ranges);
        let except = merged(except);
        let is_excepted = |range: &PortRange| {
            except.iter().any(|each| each.first <= range.first && range.last <= each.last)
        };
        if !ranges.is_empty() && ranges.iter().all(is_excepted) {
            let reason = "every port of the list is also excepted, so nothing is left to redirect: remove the \
                exception, or the redirect";
            self.add(setting, list(ranges), reason);
        }
    }

    fn ranges(&mut self, setting: Setting, ranges: &[PortRange]) {
        for range in ranges {
            if range.first > range.last {
                let reason = format!("the range is empty: write {}-{}", range.last, range.first);
                self.add(setting, range, reason);
            } else if range.first == 0 {
                self.add(setting, range, "port 0 does not exist: begin with 1");
            }
        }
    }

    fn exempt(&mut self, exempt: &Exempt, ours: Mark) {
        let Exempt { uids, gids, marks, net_cls, cgroups } = exempt;
        for (setting, ids) in [(Setting::ExemptUids, uids), (Setting::ExemptGids, gids)] {
            if ids.contains(&NO_ID) {
                self.add(setting, NO_ID, "no process can have this id: use at most 4294967294");
            }
        }
        for mark in marks {
            self.mark(Setting::ExemptMarks, *mark);
            if mark.mask != 0 && mark.value & ours.mask == ours.value {
                let reason = format!(
                    "packets with the mark {ours} are delivered to the pod itself and would not leave it: use \
                     another mark"
                );
                self.add(Setting::ExemptMarks, mark, reason);
            }
        }
        if net_cls.contains(&0) {
            let reason =
                "every process without a class has class id 0: use the net_cls.classid of the proxy's group";
            self.add(Setting::ExemptNetCls, "0x0", reason);
        }
        for path in cgroups {
            if let Some(reason) = bad_cgroup(path) {
                self.add(Setting::ExemptCgroups, path, reason);
            }
        }
    }

    fn mark(&mut self, setting: Setting, mark: Mark) {
        if mark.mask == 0 {
            self.add(setting, mark, "a mask of 0 matches every packet: set the bits that count");
        } else if mark.value == 0 {
            self.add(
                setting,
                mark,
                "packets without a mark would match too: set at least one bit of the value",
            );
        } else if mark.value & !mark.mask != 0 {
            let reason = format!(
                "the value has bits outside the mask, so nothing matches: write {}",
                Mark { mask: mark.mask | mark.value, ..mark }
            );
            self.add(setting, mark, reason);
        }
    }

    fn routing(&mut self, routing: &Routing) {
        let Routing { mark, table } = *routing;
        self.mark(Setting::Mark, mark);
        if ISTIO_MARKS.contains(&mark.value) {
            self.add(Setting::Mark, mark, format!("Istio uses this mark: use {}", Routing::DEFAULT.mark));
        }
        let of = if table == ISTIO_TABLE { Some("Istio") } else { None };
        let of = of.or_else(|| KERNEL_TABLES.contains(&table).then_some("the kernel"));
        if let Some(owner) = of {
            let reason = format!("{owner} uses this routing table: use {}", Routing::DEFAULT.table);
            self.add(Setting::Table, table, reason);
        }
    }
}

fn bad_cgroup(path: &str) -> Option<&'static str> {
    let unsafe_in_list = |each: char| each == ',' || each == '"' || each.is_whitespace() || each.is_control();
    let parts = || path.split('/');
    if path.is_empty() || path == "/" {
        Some("the root group has every process: name the proxy's group")
    } else if path.starts_with('/') || parts().any(|part| matches!(part, "" | "." | "..")) {
        Some("write the path relative to the root of the hierarchy, such as proxies/nginx")
    } else if path.contains(unsafe_in_list) {
        Some("the path has a comma, a quote or white space: give the group another name")
    } else if parts().count() > DEEPEST_CGROUP {
        Some("the group is nested too deeply: name one of its first 255 ancestors")
    } else {
        None
    }
}

pub(super) fn list(items: &[impl fmt::Display]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
