//! Which crate may depend on which.
//!
//! The table below enforces the architecture: types do not know programs, pure crates do no I/O,
//! and programs do not know each other. Cargo itself only rejects cycles.

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
const OUTSIDE_WORLD: &[&str] = &["nix", "rtnetlink", "rustix", "socket2", "tokio"];

const NONE: Ours = Ours::Only(&[]);
const LIBRARIES: Ours = Ours::Only(&["isp-api", "isp-client", "isp-dataplane", "isp-plan", "isp-runtime"]);

const RULES: &[Rule] = &[
    Rule { of: "isp-api", ours: NONE, never: &[] },
    Rule { of: "isp-dataplane", ours: NONE, never: OUTSIDE_WORLD },
    Rule { of: "isp-plan", ours: Ours::Only(&["isp-api"]), never: OUTSIDE_WORLD },
    Rule { of: "isp-client", ours: NONE, never: &[] },
    Rule { of: "isp-runtime", ours: NONE, never: &[] },
    Rule { of: "isp-operator", ours: LIBRARIES, never: &[] },
    Rule { of: "isp-webhook", ours: LIBRARIES, never: &[] },
    Rule { of: "isp-proxy-agent", ours: LIBRARIES, never: &[] },
    Rule { of: "isp-cli", ours: LIBRARIES, never: &[] },
    Rule { of: "isp-echo", ours: NONE, never: &[] },
    Rule { of: "isp-lab", ours: Ours::Any, never: &[] },
    Rule { of: "isp-demo", ours: Ours::Only(&["isp-api", "isp-lab"]), never: &[] },
    Rule { of: "xtask", ours: Ours::Any, never: &[] },
];

/// A crate that the tests of every crate may use.
const FOR_TESTS: &str = "isp-lab";

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
                    "{krate} has no rule: say what it may depend on in RULES, xtask/src/directions.rs"
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
        in_table || (on.kind == DependencyKind::Dev && on.name == FOR_TESTS)
    }
}

#[cfg(test)]
mod tests;
