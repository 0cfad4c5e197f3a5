//! What the rules of a pod do, and whether that is what its manifest says.
//!
//! Nothing here goes by the names of chains, except who wrote the rules. Everything else comes from
//! packets that are traced: one for each range of ports, network, user and group that the rules
//! distinguish.

mod constants;
mod exempt;
mod findings;
mod traffic;

use std::net::IpAddr;

use serde::Serialize;

use crate::decode::PodRules;
use crate::rules::{BackEnd, Statement, Table};
use crate::trace::By;

pub use exempt::Exempt;
pub use findings::{Code, Finding, Severity};
pub use traffic::{Destination, Ports, Target, Traffic};

/// What the pod's manifest and status say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The addresses of the pod.
    pub addresses: Vec<IpAddr>,
    /// The modes that the manifest claims.
    pub claims: Vec<Claim>,
    /// The containers of the proxy.
    pub proxies: Vec<Process>,
    /// The other containers.
    pub applications: Vec<Process>,
    /// The ports that the other containers declare.
    pub ports: Vec<u16>,
    /// The ports that the manifest leaves out of the redirect, first and last of each range.
    pub left_out: Vec<(u16, u16)>,
}

/// A mode that the manifest claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// The mode.
    pub mode: Mode,
    /// Where it says so.
    pub by: String,
}

/// A container and the user that it runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The name of the container.
    pub container: String,
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// How connections come to the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Mode {
    /// They do not.
    None,
    /// Their destination is rewritten.
    Redirect,
    /// They are handed to a transparent socket.
    Tproxy,
    /// Some in one way, some in the other.
    Mixed,
    /// It depends on rules that are not known.
    Unclear,
}

impl Mode {
    /// The name in Istio's annotation.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Redirect => "REDIRECT",
            Self::Tproxy => "TPROXY",
            Self::Mixed => "MIXED",
            Self::Unclear => "UNCLEAR",
        }
    }

    /// The mode of some traffic.
    fn of<'a>(targets: impl IntoIterator<Item = &'a Target>) -> Self {
        let mut mode = Self::None;
        for target in targets {
            let next = match target {
                Target::Proxy { by: By::Tproxy, .. } => Self::Tproxy,
                Target::Proxy { .. } => Self::Redirect,
                Target::Unclear { .. } => Self::Unclear,
                Target::Direct | Target::Elsewhere { .. } | Target::Dropped | Target::NoRoute => continue,
            };
            mode = match mode {
                Self::None | Self::Unclear => next,
                same if same == next || next == Self::Unclear => same,
                _ => Self::Mixed,
            };
        }
        mode
    }
}

/// Who wrote rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Istio, for a sidecar.
    Istio,
    /// Istio, for its ambient mode.
    IstioAmbient,
    /// This project's init container.
    PodRedirect,
    /// Somebody else.
    Unknown,
}

impl Origin {
    fn of(table: &Table) -> Self {
        let has_chain = |beginning: &str| table.chains.keys().any(|name| name.starts_with(beginning));
        if table.name == isp_dataplane::redirect::TABLE.as_str() {
            Self::PodRedirect
        } else if has_chain("ISTIO_PRERT") || table.name.starts_with("istio-ambient") {
            Self::IstioAmbient
        } else if has_chain("ISTIO_") || table.name.starts_with("istio-proxy") {
            Self::Istio
        } else {
            Self::Unknown
        }
    }
}

/// What the rules do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The mode in force: that of inbound connections, or of outbound ones if only these are
    /// redirected.
    pub mode: Mode,
    /// The modes that the manifest claims.
    pub claims: Vec<Claim>,
    /// Who wrote the rules.
    pub origins: Vec<Origin>,
    /// The kinds of program that wrote them.
    pub back_ends: Vec<BackEnd>,
    /// The traffic of each address family of the pod.
    pub families: Vec<FamilyTraffic>,
    /// Whatever is wrong.
    pub findings: Vec<Finding>,
    /// Statements of rules that are not known.
    pub unknown: Vec<String>,
}

/// The traffic of one address family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FamilyTraffic {
    /// The pod's address.
    pub address: IpAddr,
    /// How inbound connections come to the proxy.
    pub inbound_mode: Mode,
    /// How outbound connections come to the proxy.
    pub outbound_mode: Mode,
    /// Connections to the pod.
    pub inbound: Traffic,
    /// Connections of the pod.
    pub outbound: Traffic,
    /// Who is exempt from the redirect of outbound connections.
    pub exempt: Exempt,
}

/// Explains the rules of a pod.
pub fn explain(rules: &PodRules, facts: &Facts) -> Explanation {
    let redirects: Vec<&Table> = rules.ruleset.tables.iter().filter(|table| redirects(table)).collect();
    let families: Vec<FamilyTraffic> =
        facts.addresses.iter().map(|address| FamilyTraffic::of(rules, *address)).collect();
    let mut explanation = Explanation {
        mode: mode(&families),
        claims: facts.claims.clone(),
        origins: distinct(redirects.iter().map(|table| Origin::of(table))),
        back_ends: distinct(redirects.iter().map(|table| table.back_end)),
        families,
        findings: Vec::new(),
        unknown: unknown(rules),
    };
    explanation.findings = findings::all(rules, facts, &explanation);
    explanation
}

impl FamilyTraffic {
    fn of(rules: &PodRules, address: IpAddr) -> Self {
        let inbound = Traffic::inbound(rules, address);
        let outbound = Traffic::outbound(rules, address);
        let exempt = Exempt::of(rules, address, &outbound);
        let (inbound_mode, outbound_mode) = (Mode::of(inbound.targets()), Mode::of(outbound.targets()));
        Self { address, inbound_mode, outbound_mode, inbound, outbound, exempt }
    }

    fn is_redirected(&self) -> bool {
        self.inbound_mode != Mode::None || self.outbound_mode != Mode::None
    }
}

fn mode(families: &[FamilyTraffic]) -> Mode {
    // A family without rules does not make the mode of the other one mixed; that is a finding.
    let together = |mut modes: Vec<Mode>| {
        modes.retain(|mode| *mode != Mode::None);
        modes.dedup();
        match modes[..] {
            [] => Mode::None,
            [one] => one,
            _ => Mode::Mixed,
        }
    };
    let inbound = together(families.iter().map(|family| family.inbound_mode).collect());
    match inbound {
        Mode::None => together(families.iter().map(|family| family.outbound_mode).collect()),
        mode => mode,
    }
}

fn statements(table: &Table) -> impl Iterator<Item = &Statement> {
    table.chains.values().flat_map(|chain| &chain.rules).flat_map(|rule| &rule.statements)
}

fn redirects(table: &Table) -> bool {
    statements(table).any(|statement| {
        matches!(
            statement,
            Statement::Redirect { .. } | Statement::Tproxy(_) | Statement::DestinationNat { .. }
        )
    })
}

fn unknown(rules: &PodRules) -> Vec<String> {
    let found = rules.ruleset.tables.iter().flat_map(|table| {
        let unknown = statements(table).filter(|statement| matches!(statement, Statement::Unknown(_)));
        unknown.map(move |statement| format!("table {table}: {statement}"))
    });
    distinct(found)
}

fn distinct<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort();
    items.dedup();
    items
}

#[cfg(test)]
mod tests;
