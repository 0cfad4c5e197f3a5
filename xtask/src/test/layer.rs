//! The test layers, by their requirements, and which test belongs to which layer.
//!
//! The file name of an integration test has its layer: `tests/<layer>_<what>.rs`. All other tests
//! belong to the unit layer. Cargo lists the tests, so new files are picked up automatically.

use std::collections::BTreeSet;
use std::fmt;

use clap::ValueEnum;

use crate::workspace::Package;

/// In order of increasing requirements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layer {
    /// Pure code and golden files; needs nothing
    Unit,
    /// Tests with a real API server on loopback
    Api,
    /// Pages in a real browser; needs Chromium
    Browser,
    /// Rules in the real kernel, in network namespaces; needs root or user namespaces
    Kernel,
    /// Whole scenarios on the lab's nodes; needs root
    Lab,
}

/// Tests with continuous traffic. Together they would starve the clusters of CPU.
const APART: [&str; 8] = [
    "lab_beside",
    "lab_beside_operator",
    "lab_beside_storm",
    "lab_demo_mesh",
    "lab_hostile",
    "lab_operator",
    "lab_release",
    "lab_upgrade",
];

/// Tests that take minutes start first, so that none runs alone at the end.
const LONGEST: [&str; 19] = [
    "lab_operator",
    "lab_demo",
    "lab_demo_mesh",
    "lab_release",
    "lab_filter",
    "lab_hostile",
    "lab_kube_proxy",
    "lab_mesh",
    "lab_same_as_kube_proxy",
    "lab_docs",
    "lab_redirect",
    "lab_problem",
    "lab_trace",
    "lab_beside_operator",
    "lab_beside_storm",
    "api_operator",
    "api_plan",
    "api_certificates",
    "api_ownership",
];

/// Whether two runs of cargo must not be concurrent.
pub(crate) fn must_not_meet(one: &[String], other: &[String]) -> bool {
    let is_apart = |arguments: &[String]| arguments.iter().any(|word| APART.contains(&word.as_str()));
    is_apart(one) && is_apart(other)
}

impl Layer {
    pub(crate) const ALL: [Self; 5] = [Self::Unit, Self::Api, Self::Browser, Self::Kernel, Self::Lab];

    /// The number of test programs that run at once. They mostly wait.
    pub(crate) fn lanes(self) -> usize {
        match self {
            Self::Unit | Self::Browser | Self::Kernel => 1,
            Self::Api => 4,
            Self::Lab => 3,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::Api => "api",
            Self::Browser => "browser",
            Self::Kernel => "kernel",
            Self::Lab => "lab",
        }
    }

    /// The layer of an integration test, by its name.
    fn of(test: &str) -> Self {
        let first_word = test.split('_').next().unwrap_or(test);
        Self::ALL.into_iter().find(|layer| layer.name() == first_word).unwrap_or(Self::Unit)
    }

    /// The arguments of the cargo runs for the layer's tests, by stage; empty if the layer has no
    /// tests. The runs of one stage may be concurrent. Selects the whole workspace, so that cargo
    /// resolves the same features and builds each dependency once.
    pub(crate) fn stages(self, packages: &[Package]) -> Vec<Vec<Vec<String>>> {
        let targets = packages.iter().flat_map(|package| &package.targets);
        let names: BTreeSet<_> = targets
            .filter(|target| target.is_integration_test() && Self::of(&target.name) == self)
            .map(|target| target.name.as_str())
            .collect();

        let mut programs = words("test --workspace --no-fail-fast");
        programs.extend(names.iter().flat_map(|name| ["--test".to_owned(), (*name).to_owned()]));
        match self {
            Self::Unit => {
                programs.extend(words("--lib --bins --examples"));
                vec![vec![programs], vec![words("test --workspace --no-fail-fast --doc")]]
            }
            _ if names.is_empty() => vec![],
            Self::Browser | Self::Kernel => vec![vec![programs]],
            Self::Api | Self::Lab => {
                programs.push("--no-run".to_owned());
                // A lab is a whole cluster, so each test program runs only one at once.
                let threads = if self == Self::Lab { " -- --test-threads=1" } else { "" };
                let run = |name: &&str| words(&format!("test --workspace --test {name}{threads}"));
                let mut names: Vec<_> = names.iter().collect();
                names.sort_by_key(|name| LONGEST.iter().position(|long| long == *name).unwrap_or(usize::MAX));
                vec![vec![programs], names.into_iter().map(run).collect()]
            }
        }
    }

    /// The message for a layer without tests.
    pub(crate) fn has_no_tests(self) -> String {
        match self {
            Self::Unit => "no test ran".to_owned(),
            layer => format!("no test ran; they belong in files tests/{layer}_*.rs of a crate"),
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
