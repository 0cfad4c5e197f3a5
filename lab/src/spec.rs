//! What a lab is, as its directory on the host records it. `up` writes it, the lab's init carries it out, every other
//! command reads it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::components::Component;
use crate::topology::Topology;

/// A file of a lab's directory could not be used.
#[derive(Debug, Error)]
pub enum SpecError {
    /// Reading or writing failed.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It holds something else.
    #[error("{} does not hold what the lab wrote there ({source}): remove the lab with `down`", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
}

/// Everything that init needs to know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) topology: Topology,
    /// The port on the host's loopback that leads to the API server; 0 for any.
    pub(crate) host_port: u16,
    /// The port of the API server inside the lab.
    pub(crate) api_port: u16,
    pub(crate) components: Vec<Component>,
    /// A directory for each node, in the order of the topology.
    pub(crate) node_directories: Vec<PathBuf>,
    /// The programs on the host that commands need.
    pub(crate) kubectl: PathBuf,
    pub(crate) ctr: PathBuf,
    /// There when Istio was asked for.
    pub(crate) istioctl: Option<PathBuf>,
}

/// What init tells once it listens.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Listening {
    pub(crate) host_port: u16,
}

/// The files of one lab.
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

    /// The log of a component; a node's are named `edge-1-kubelet`.
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

/// Whoever reads the file sees all of it or none.
fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), SpecError> {
    let fail = |source| SpecError::File { path: path.to_owned(), source };
    let text = serde_json::to_vec_pretty(value)
        .map_err(|source| SpecError::Content { path: path.to_owned(), source })?;
    let partial = path.with_extension("partial");
    fs::write(&partial, text).map_err(fail)?;
    fs::rename(&partial, path).map_err(fail)
}
