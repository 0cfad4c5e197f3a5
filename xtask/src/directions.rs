//! Which crate may depend on which.
//!
//! The table below enforces the architecture: types do not know programs, pure crates do no I/O,
//! and programs do not know each other. Cargo itself only rejects cycles.

pub(crate) mod table;

use std::fmt;

use thiserror::Error;

use crate::workspace::{Dependency, DependencyKind, Package};

/// The allowed dependencies of one workspace crate.
struct Rule {
    of: &'static str,
    ours: Ours,
    /// External crates that it must not use outside its tests.
    never: &'static [&'static str],
}

/// The allowed workspace crates.
enum Ours {
    Any,
    Only(&'static [&'static str]),
}

/// External crates that access the kernel, the network or a runtime.
const OUTSIDE_WORLD: &[&str] = &["netlink-sys", "nix", "rtnetlink", "rustix", "socket2", "tokio"];

const NONE: Ours = Ours::Only(&[]);
const LIBRARIES: Ours = Ours::Only(&["isp-api", "isp-client", "isp-dataplane", "isp-plan", "isp-runtime"]);
/// The agent programs the kernel of its node.
const OF_AGENT: Ours = Ours::Only(&[
    "isp-api",
    "isp-client",
    "isp-dataplane",
    "isp-intake",
    "isp-kernel",
    "isp-plan",
    "isp-runtime",
]);

/// The command line explains what the kernel of a pod has, and traces packets.
const OF_COMMAND_LINE: Ours = Ours::Only(&[
    "isp-api",
    "isp-client",
    "isp-dataplane",
    "isp-paths",
    "isp-plan",
    "isp-pod-rules",
    "isp-runtime",
]);

const RULES: &[Rule] = &[
    Rule { of: "isp-api", ours: NONE, never: &[] },
    Rule { of: "isp-dataplane", ours: NONE, never: OUTSIDE_WORLD },
    Rule { of: "isp-pod-rules", ours: Ours::Only(&["isp-dataplane"]), never: OUTSIDE_WORLD },
    Rule { of: "isp-xtables", ours: NONE, never: &[] },
    Rule { of: "isp-kernel", ours: Ours::Only(&["isp-dataplane"]), never: &[] },
    Rule { of: "isp-plan", ours: Ours::Only(&["isp-api", "isp-dataplane"]), never: OUTSIDE_WORLD },
    Rule { of: "isp-intake", ours: Ours::Only(&["isp-api", "isp-dataplane"]), never: OUTSIDE_WORLD },
    Rule {
        of: "isp-paths",
        ours: Ours::Only(&["isp-api", "isp-dataplane", "isp-intake", "isp-plan"]),
        never: OUTSIDE_WORLD,
    },
    Rule { of: "isp-client", ours: NONE, never: &[] },
    Rule { of: "isp-runtime", ours: NONE, never: &[] },
    Rule { of: "isp-operator", ours: LIBRARIES, never: &[] },
    Rule { of: "isp-webhook", ours: LIBRARIES, never: &[] },
    Rule { of: "isp-proxy-agent", ours: OF_AGENT, never: &[] },
    Rule {
        of: "isp-pod-redirect",
        ours: Ours::Only(&["isp-dataplane", "isp-kernel", "isp-pod-rules", "isp-xtables"]),
        never: &[],
    },
    Rule { of: "isp-cli", ours: OF_COMMAND_LINE, never: &[] },
    Rule { of: "isp-echo", ours: NONE, never: &[] },
    Rule { of: "isp-lab", ours: Ours::Any, never: &[] },
    Rule { of: "isp-demo", ours: Ours::Only(&["isp-api", "isp-lab", "isp-paths"]), never: &[] },
    Rule { of: "isp-testkit", ours: Ours::Only(&["isp-api", "isp-client", "isp-lab"]), never: &[] },
    Rule { of: "xtask", ours: Ours::Any, never: &[] },
];

/// Crates that the tests of every crate may use.
const FOR_TESTS: &[&str] = &["isp-lab", "isp-testkit"];
/// A crate that nothing but tests may use, whatever the table says.
const ONLY_FOR_TESTS: &str = "isp-testkit";

/// A dependency that the table does not allow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// The crate has no line in the table.
    Unknown { krate: String },
    /// The dependency on another workspace crate is not allowed.
    Direction { krate: String, on: String },
    /// A pure crate depends on one that does I/O.
    Impure { krate: String, on: String },
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { krate } => {
                write!(
                    out,
                    "{krate} has no rule: add its allowed dependencies to RULES in xtask/src/directions.rs"
                )
            }
            Self::Direction { krate, on } => write!(out, "{krate} must not depend on {on}"),
            Self::Impure { krate, on } => write!(out, "{krate} is pure and must not depend on {on}"),
        }
    }
}

/// Dependencies that the table does not allow.
#[derive(Debug, Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub(crate) struct WrongDirections(Vec<Violation>);

/// Checks every workspace crate against the table.
pub(crate) fn check(packages: &[Package]) -> Result<(), WrongDirections> {
    let found = violations(packages);
    if found.is_empty() { Ok(()) } else { Err(WrongDirections(found)) }
}

fn violations(packages: &[Package]) -> Vec<Violation> {
    let is_ours = |name: &str| packages.iter().any(|each| each.name == name);
    let mut found = Vec::new();
    for package in packages {
        let krate = &package.name;
        let Some(rule) = RULES.iter().find(|rule| rule.of == krate) else {
            found.push(Violation::Unknown { krate: krate.clone() });
            continue;
        };
        for on in &package.dependencies {
            if is_ours(&on.name) && !rule.allows_ours(on) {
                found.push(Violation::Direction { krate: krate.clone(), on: on.name.clone() });
            }
            if on.kind != DependencyKind::Dev && rule.never.contains(&on.name.as_str()) {
                found.push(Violation::Impure { krate: krate.clone(), on: on.name.clone() });
            }
        }
    }
    found
}

impl Rule {
    fn allows_ours(&self, on: &Dependency) -> bool {
        let in_table = match self.ours {
            Ours::Any => true,
            Ours::Only(names) => names.contains(&on.name.as_str()),
        };
        if on.kind == DependencyKind::Dev {
            return in_table || FOR_TESTS.contains(&on.name.as_str());
        }
        in_table && on.name != ONLY_FOR_TESTS
    }
}

#[cfg(test)]
mod tests;
