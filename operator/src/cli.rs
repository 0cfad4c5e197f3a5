//! The command line.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use isp_runtime::duration;
use isp_runtime::telemetry::LogArgs;
use thiserror::Error;

use crate::lease::Timing;

/// Carries out what IngressSourcePreserves ask for, and puts it back.
#[derive(Debug, Parser)]
#[command(name = "operator", version, arg_required_else_help = true)]
pub struct Cli {
    /// How it logs.
    #[command(flatten)]
    pub log: LogArgs,
    /// What it does.
    #[command(subcommand)]
    pub command: Command,
}

/// What it does.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Follow the cluster, and act while this replica holds the Lease.
    Run(RunArgs),
    /// Delete all IngressSourcePreserves, put everything back, and end. The operator must not be running.
    Cleanup(CleanupArgs),
}

/// `operator run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The image of the agents.
    #[arg(long, env = "AGENT_IMAGE")]
    pub(crate) agent_image: String,
    /// Secrets by which it is pulled, in kube-proxy's namespace: given to the agents' account. Several are separated by commas.
    #[arg(long, env = "AGENT_PULL_SECRETS", value_delimiter = ',')]
    pub(crate) agent_pull_secrets: Vec<String>,
    /// Where /healthz, /readyz and /metrics are served; `[::]` is every address, of both families.
    #[arg(long, default_value = "[::]:8080")]
    pub(crate) admin: SocketAddr,
    #[command(flatten)]
    pub(crate) lease: LeaseArgs,
}

/// `operator cleanup`.
#[derive(Debug, Args)]
pub struct CleanupArgs {
    /// How long it may take.
    #[arg(long, default_value = "10m", value_parser = duration::parse)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) lease: LeaseArgs,
}

/// Who acts, of several replicas.
#[derive(Debug, Args)]
pub(crate) struct LeaseArgs {
    /// The namespace of the Lease.
    #[arg(long, env = "POD_NAMESPACE", default_value = "sourcepreserve-system")]
    pub(crate) namespace: String,
    /// Who this replica is; different for each. [default: the host's name]
    #[arg(long, env = "POD_NAME")]
    identity: Option<String>,
    /// After this time without a change another replica takes the Lease; whole seconds.
    #[arg(long, default_value = "15s", value_parser = duration::parse)]
    lease_duration: Duration,
    /// After this time without a renewal a replica stops acting.
    #[arg(long, default_value = "10s", value_parser = duration::parse)]
    renew_deadline: Duration,
    /// How often the Lease is renewed.
    #[arg(long, default_value = "3s", value_parser = duration::parse)]
    renew_interval: Duration,
}

/// Settings that make no sense.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LeaseArgsError {
    #[error(
        "--renew-interval must be shorter than --renew-deadline, and that shorter than --lease-duration, which is at least a second: \
         {renew:?}, {give_up:?}, {lease:?}"
    )]
    Timing { renew: Duration, give_up: Duration, lease: Duration },
    #[error("--lease-duration {0:?} is not in whole seconds, and a Lease can say nothing else")]
    NotWhole(Duration),
    #[error("this host has no name: {0}; choose one with --identity")]
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
