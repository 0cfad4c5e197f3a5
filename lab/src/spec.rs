//! The description of a lab, stored in its directory on the host. `up` writes it, init executes it,
//! and all other commands read it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::components::Component;
use crate::topology::Topology;

/// A file in a lab's directory could not be used.
#[derive(Debug, Error)]
pub enum SpecError {
    /// Reading or writing failed.
    #[error("cannot access {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The file could not be parsed.
    #[error("{} is not a file of the lab ({source}): remove the lab with `down`", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The parse error.
        source: serde_json::Error,
    },
}

/// Everything that init needs to know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) topology: Topology,
    /// The port on the host's loopback that forwards to the API server; 0 for any.
    pub(crate) host_port: u16,
    /// The API server's port inside the lab.
    pub(crate) api_port: u16,
    pub(crate) components: Vec<Component>,
    /// One directory per node, in the order of the topology.
    pub(crate) node_directories: Vec<PathBuf>,
    /// Host paths of the programs that commands run.
    pub(crate) kubectl: PathBuf,
    pub(crate) ctr: PathBuf,
    /// The archives of this workspace's programs that every node starts with.
    pub(crate) own_images: Vec<PathBuf>,
    /// Only with Istio.
    pub(crate) istioctl: Option<PathBuf>,
}

/// Written by init once it listens.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Listening {
    pub(crate) host_port: u16,
}

/// The directory of one lab.
#[derive(Debug, Clone)]
pub(crate) struct LabDir(PathBuf);

impl LabDir {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn credentials(&self) -> PathBuf {
        self.0.join("pki")
    }

    pub(crate) fn node(&self, name: &str) -> PathBuf {
        self.0.join("nodes").join(name)
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    /// The log of a component. For nodes, the file name is like `edge-1-kubelet.log`.
    pub(crate) fn log(&self, component: &str) -> PathBuf {
        self.logs().join(format!("{}.log", component.replace('/', "-")))
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.0.join("kubeconfig")
    }

    pub(crate) fn control_socket(&self) -> PathBuf {
        self.0.join("control")
    }

    pub(crate) fn pid_file(&self) -> PathBuf {
        self.0.join("init.pid")
    }

    pub(crate) fn owner_file(&self) -> PathBuf {
        self.0.join("owner.pid")
    }

    pub(crate) fn spec(&self) -> Result<Spec, SpecError> {
        read(&self.0.join("lab.json"))
    }

    pub(crate) fn write_spec(&self, spec: &Spec) -> Result<(), SpecError> {
        write(&self.0.join("lab.json"), spec)
    }

    pub(crate) fn listening(&self) -> Result<Listening, SpecError> {
        read(&self.0.join("listening.json"))
    }

    pub(crate) fn write_listening(&self, listening: Listening) -> Result<(), SpecError> {
        write(&self.0.join("listening.json"), &listening)
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, SpecError> {
    let text = fs::read(path).map_err(|source| SpecError::File { path: path.to_owned(), source })?;
    serde_json::from_slice(&text).map_err(|source| SpecError::Content { path: path.to_owned(), source })
}

/// Writes a file atomically.
fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), SpecError> {
    let fail = |source| SpecError::File { path: path.to_owned(), source };
    let text = serde_json::to_vec_pretty(value)
        .map_err(|source| SpecError::Content { path: path.to_owned(), source })?;
    let partial = path.with_extension("partial");
    fs::write(&partial, text).map_err(fail)?;
    fs::rename(&partial, path).map_err(fail)
}
