//! The crates in a program, from `cargo metadata` and Cargo.lock: everything that is linked into
//! it. Build scripts, procedural macros and crates of tests run elsewhere and are left out.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use thiserror::Error;

#[cfg(test)]
mod tests;

/// A crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) license: Option<String>,
    /// The SHA-256 of the package; `None` for crates of the workspace.
    pub(super) checksum: Option<String>,
}

/// The crates of a program. The numbers are places in `crates`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Linked {
    /// Sorted by name and version.
    pub(super) crates: Vec<Crate>,
    /// The crate of the program itself.
    pub(super) root: usize,
    /// The dependencies of each crate.
    pub(super) depends_on: Vec<Vec<usize>>,
}

/// Why the crates are not known.
#[derive(Debug, Error)]
pub(crate) enum CratesError {
    #[error("cannot parse the output of `cargo metadata`")]
    Parse(#[from] serde_json::Error),
    #[error("no crate of the workspace has the program {0}")]
    NoProgram(String),
    #[error("`cargo metadata` names the crate {0} but does not describe it")]
    Unknown(String),
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Deserialize)]
struct EdgeKind {
    /// Absent for a normal dependency.
    kind: Option<String>,
}

impl Package {
    fn has(&self, kind: &str, name: Option<&str>) -> bool {
        let matches = |target: &Target| {
            target.kind.iter().any(|one| one == kind) && name.is_none_or(|name| target.name == name)
        };
        self.targets.iter().any(matches)
    }
}

/// All crates of the workspace and their dependencies.
pub(super) struct Graph {
    packages: BTreeMap<String, Package>,
    /// Normal dependencies, by the crate's identifier.
    edges: BTreeMap<String, Vec<String>>,
    checksums: BTreeMap<(String, String), String>,
}

impl Graph {
    /// Reads the output of `cargo metadata` for one platform, and Cargo.lock.
    pub(super) fn read(metadata: &[u8], lock: &str) -> Result<Self, CratesError> {
        let Metadata { packages, resolve } = serde_json::from_slice(metadata)?;
        let normal = |edge: &Edge| edge.dep_kinds.iter().any(|kind| kind.kind.is_none());
        let targets = |node: Node| node.deps.into_iter().filter(normal).map(|edge| edge.pkg).collect();
        Ok(Self {
            packages: packages.into_iter().map(|package| (package.id.clone(), package)).collect(),
            edges: resolve.nodes.into_iter().map(|node| (node.id.clone(), targets(node))).collect(),
            checksums: checksums(lock),
        })
    }

    /// The crates that are linked into a program.
    pub(super) fn linked(&self, program: &str) -> Result<Linked, CratesError> {
        let root = self.packages.values().find(|package| package.has("bin", Some(program)));
        let root = root.ok_or_else(|| CratesError::NoProgram(program.to_owned()))?;
        let mut reached = BTreeSet::new();
        let mut next = vec![root.id.as_str()];
        while let Some(id) = next.pop() {
            if reached.insert(id) {
                next.extend(self.dependencies(id)?);
            }
        }
        let packages = reached.into_iter().filter_map(|id| self.packages.get(id));
        let mut ordered: Vec<(Crate, &str)> =
            packages.map(|package| (self.describe(package), package.id.as_str())).collect();
        ordered.sort();
        let place = |id: &str| ordered.iter().position(|(_, other)| *other == id);
        let depends_on = ordered
            .iter()
            .map(|(_, id)| Ok(self.dependencies(id)?.into_iter().filter_map(place).collect()))
            .collect::<Result<_, CratesError>>()?;
        let root = place(&root.id).ok_or_else(|| CratesError::Unknown(root.id.clone()))?;
        Ok(Linked { root, depends_on, crates: ordered.into_iter().map(|(described, _)| described).collect() })
    }

    /// The linked dependencies of a crate, without procedural macros.
    fn dependencies(&self, id: &str) -> Result<Vec<&str>, CratesError> {
        let mut linked = Vec::new();
        for target in self.edges.get(id).into_iter().flatten() {
            let package = self.packages.get(target).ok_or_else(|| CratesError::Unknown(target.clone()))?;
            if !package.has("proc-macro", None) {
                linked.push(target.as_str());
            }
        }
        Ok(linked)
    }

    fn describe(&self, package: &Package) -> Crate {
        let Package { name, version, license, .. } = package;
        let checksum = self.checksums.get(&(name.clone(), version.clone())).cloned();
        // Old crates separate licenses by a slash, which SPDX does not know.
        let license = license.as_ref().map(|license| license.replace('/', " OR "));
        Crate { name: name.clone(), version: version.clone(), license, checksum }
    }
}

/// The checksums in Cargo.lock, by name and version. Cargo writes one field per line.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]") {
        let field = |name: &str| {
            let value = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
            value.map(|value| value.trim_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(checksum)) =
            (field("name"), field("version"), field("checksum"))
        {
            found.insert((name, version), checksum);
        }
    }
    found
}
