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
    /// Rules in the real kernel, in network namespaces; needs root or user namespaces
    Kernel,
    /// Whole scenarios on the lab's nodes; needs root
    Lab,
}

/// Tests that inspect the whole machine, so nothing else may start or stop meanwhile.
const ALONE: [&str; 1] = ["lab_lifecycle"];

/// Tests that take minutes start first, so that none runs alone at the end. The two with continuous
/// traffic are kept apart: together they would starve the clusters of CPU.
const LONGEST: [&str; 10] = [
    "lab_hostile",
    "lab_mesh",
    "lab_filter",
    "lab_problem",
    "lab_operator",
    "lab_docs",
    "lab_demo",
    "api_chart",
    "api_operator",
    "api_plan",
];

impl Layer {
    pub(crate) const ALL: [Self; 4] = [Self::Unit, Self::Api, Self::Kernel, Self::Lab];

    fn name(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::Api => "api",
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
            Self::Kernel => vec![vec![programs]],
            Self::Api | Self::Lab => {
                programs.push("--no-run".to_owned());
                // A lab is a whole cluster, so each test program runs only one at once.
                let threads = if self == Self::Lab { " -- --test-threads=1" } else { "" };
                let run = |name: &&str| words(&format!("test --workspace --test {name}{threads}"));
                let (alone, mut others): (Vec<_>, Vec<_>) =
                    names.iter().partition(|name| ALONE.contains(name));
                others
                    .sort_by_key(|name| LONGEST.iter().position(|long| long == *name).unwrap_or(usize::MAX));
                let alone = alone.into_iter().map(|name| vec![run(name)]);
                let others: Vec<_> = others.into_iter().map(run).collect();
                let stages = std::iter::once(vec![programs]).chain(alone).chain([others]);
                stages.filter(|stage| !stage.is_empty()).collect()
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
