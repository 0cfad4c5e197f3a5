//! Where facts come from: a cluster, or a dump of one.

use std::path::{Path, PathBuf};

use k8s_openapi::jiff::Timestamp;

use super::cluster::Cluster;
use super::kinds::Kind;
use super::{dump, live};
use crate::cli::PlaceArgs;
use crate::connection::Connection;
use crate::error::CommandError;

/// A cluster or a dump.
pub(crate) enum Origin {
    Cluster(Connection),
    Dump(PathBuf),
}

impl Origin {
    /// The dump or, without one, the cluster of the kubeconfig.
    pub(crate) async fn open(place: &PlaceArgs, dump: Option<&Path>) -> Result<Self, CommandError> {
        Ok(match dump {
            Some(path) => Self::Dump(path.to_owned()),
            None => Self::Cluster(Connection::open(place).await?),
        })
    }

    /// The connection, unless it is a dump.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        match self {
            Self::Cluster(connection) => Some(connection),
            Self::Dump(_) => None,
        }
    }

    /// All facts, and their time: a dump is judged as of the time when it was taken. A missing
    /// right to list a kind of `needed` is an error.
    pub(crate) async fn facts(&self, needed: &[Kind]) -> Result<(Cluster, Timestamp), CommandError> {
        match self {
            Self::Cluster(connection) => Ok((live::read(connection, needed).await?, Timestamp::now())),
            Self::Dump(path) => dump::read(path),
        }
    }
}
