//! The command line.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use isp_runtime::duration;
use isp_runtime::telemetry::LogArgs;
use thiserror::Error;

use crate::lease::Timing;

/// Applies IngressSourcePreserve objects to the cluster and reverts their changes on deletion.
#[derive(Debug, Parser)]
#[command(name = "operator", version, arg_required_else_help = true)]
pub struct Cli {
    /// Logging options.
    #[command(flatten)]
    pub log: LogArgs,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch the cluster, and reconcile while this replica holds the Lease.
    Run(RunArgs),
    /// Delete all IngressSourcePreserves, restore the cluster, and exit. The operator must not be
    /// running.
    Cleanup(CleanupArgs),
}

/// `operator run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The image of the agents.
    #[arg(long, env = "AGENT_IMAGE")]
    pub(crate) agent_image: String,
    /// Image pull secrets in kube-proxy's namespace, added to the agents' ServiceAccount. Separate
    /// several by commas.
    #[arg(long, env = "AGENT_PULL_SECRETS", value_delimiter = ',')]
    pub(crate) agent_pull_secrets: Vec<String>,
    /// Listen address for /healthz, /readyz and /metrics; `[::]` listens on all IPv4 and IPv6
    /// addresses.
    #[arg(long, default_value = "[::]:8080")]
    pub(crate) admin: SocketAddr,
    #[command(flatten)]
    pub(crate) lease: LeaseArgs,
}

/// `operator cleanup`.
#[derive(Debug, Args)]
pub struct CleanupArgs {
    /// Time limit for the cleanup.
    #[arg(long, default_value = "10m", value_parser = duration::parse)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) lease: LeaseArgs,
}

/// Leader election options.
#[derive(Debug, Args)]
pub(crate) struct LeaseArgs {
    /// The namespace of the Lease.
    #[arg(long, env = "POD_NAMESPACE", default_value = "sourcepreserve-system")]
    pub(crate) namespace: String,
    /// The identity of this replica, unique among the replicas. [default: the host's name]
    #[arg(long, env = "POD_NAME")]
    identity: Option<String>,
    /// Another replica takes the Lease after this time without a change; whole seconds.
    #[arg(long, default_value = "15s", value_parser = duration::parse)]
    lease_duration: Duration,
    /// The leader stops acting after this time without a renewal.
    #[arg(long, default_value = "10s", value_parser = duration::parse)]
    renew_deadline: Duration,
    /// Interval between renewals of the Lease.
    #[arg(long, default_value = "3s", value_parser = duration::parse)]
    renew_interval: Duration,
}

/// Invalid leader election options.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum LeaseArgsError {
    #[error(
        "--renew-interval must be shorter than --renew-deadline, and that shorter than --lease-duration, which is at least a second: \
         {renew:?}, {give_up:?}, {lease:?}"
    )]
    Timing { renew: Duration, give_up: Duration, lease: Duration },
    #[error("--lease-duration {0:?} is not in whole seconds, which is all that a Lease can store")]
    NotWhole(Duration),
    #[error("cannot read this host's name: {0}; choose an identity with --identity")]
    NoName(#[from] std::io::Error),
}

impl LeaseArgs {
    pub(crate) fn timing(&self) -> Result<Timing, LeaseArgsError> {
        let (lease, give_up, renew) = (self.lease_duration, self.renew_deadline, self.renew_interval);
        if lease.subsec_nanos() != 0 {
            return Err(LeaseArgsError::NotWhole(lease));
        }
        if renew >= give_up || give_up >= lease || renew.is_zero() {
            return Err(LeaseArgsError::Timing { renew, give_up, lease });
        }
        Ok(Timing { lease, give_up, renew })
    }

    pub(crate) fn identity(&self) -> Result<String, LeaseArgsError> {
        match &self.identity {
            Some(identity) => Ok(identity.clone()),
            None => Ok(std::fs::read_to_string("/proc/sys/kernel/hostname")?.trim().to_owned()),
        }
    }
}
