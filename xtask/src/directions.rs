//! Which crate may depend on which.
//!
//! The table below is the architecture's: types know nothing of programs, the data plane knows nothing of the
//! outside world, programs never know each other. Cargo itself only forbids circles.

use std::fmt;

use thiserror::Error;

use crate::workspace::{Dependency, DependencyKind, Package};

/// What one of our crates may depend on.
struct Rule {
    of: &'static str,
    ours: Ours,
    /// Crates of others that it must not use outside its tests.
    never: &'static [&'static str],
}

/// Which of our own crates.
enum Ours {
    Any,
    Only(&'static [&'static str]),
}

/// What reaches the kernel, the network or a runtime, by a crate's name.
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

/// What every crate's tests may use beside what the crate itself may.
const FOR_TESTS: &str = "isp-lab";

/// A dependency that the table does not have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// A crate of the workspace that has no line in the table.
    Unknown { krate: String },
    /// One of ours on another of ours.
    Direction { krate: String, on: String },
    /// A pure crate on one that reaches outside.
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

/// Dependencies in the wrong direction.
#[derive(Debug, Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub(crate) struct WrongDirections(Vec<Violation>);

/// Checks every crate of the workspace against the table.
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
