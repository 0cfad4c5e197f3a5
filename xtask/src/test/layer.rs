//! The layers of tests, by what they need, and which test belongs to which.
//!
//! An integration test's file name says its layer, `tests/<layer>_<what>.rs`; everything else is of the unit layer.
//! Cargo says which tests there are, so that a new file is picked up by itself.

use std::collections::BTreeSet;
use std::fmt;

use clap::ValueEnum;

use crate::workspace::Package;

/// From what needs nothing to what needs the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layer {
    /// Pure code and golden files; needs nothing
    Unit,
    /// Against a real API server on loopback
    Api,
    /// Rules in the real kernel, in network namespaces; needs root or user namespaces
    Kernel,
    /// Whole scenarios on the lab's nodes; needs root
    Lab,
}

/// Tests that look at everything on the machine, so that nothing else may come and go meanwhile.
const ALONE: [&str; 1] = ["lab_lifecycle"];

/// Those that take minutes begin first, so that none of them runs alone at the end. The two that keep clients asking all the time are
/// apart: together they would leave the clusters no time.
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

    /// The layer that an integration test belongs to, by its name.
    fn of(test: &str) -> Self {
        let first_word = test.split('_').next().unwrap_or(test);
        Self::ALL.into_iter().find(|layer| layer.name() == first_word).unwrap_or(Self::Unit)
    }

    /// The runs of cargo, each as its arguments, that together run the layer's tests, stage by stage; none when it has no tests. The
    /// runs of a stage may go side by side. All crates of the workspace are named so that cargo picks the same features, and builds
    /// each dependency once.
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
                // A lab is a whole cluster: each program has one at a time.
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

    /// What to say when the layer turns out to be empty.
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
