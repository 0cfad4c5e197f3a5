//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use isp_runtime::duration;
use isp_runtime::telemetry::LogArgs;

use crate::certs::{Lifetimes, LifetimesError};
use crate::serve::Callers;

/// Answers API servers about pods and IngressSourcePreserves.
#[derive(Debug, Parser)]
#[command(name = "webhook", version, arg_required_else_help = true)]
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
    /// Serve until it is told to end.
    Run(RunArgs),
}

/// `webhook run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Where API servers are served; `[::]` is every address, of both families.
    #[arg(long, default_value = "[::]:8443")]
    pub(crate) listen: SocketAddr,
    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, default_value = "[::]:8080")]
    pub(crate) admin: SocketAddr,
    /// Serve only callers with a certificate that one of the authorities in this file has signed. API servers have to be given one, by
    /// --admission-control-config-file.
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Serve only callers whose certificate has this common name or DNS name. Any of several will do. Without it, every certificate
    /// of the authorities will.
    #[arg(long, value_name = "NAME", requires = "client_ca")]
    client_name: Vec<String>,
    #[command(flatten)]
    pub(crate) certificates: CertificateArgs,
}

impl RunArgs {
    /// Who is served; anybody, if nothing is said.
    pub(crate) fn callers(&self) -> Option<Callers> {
        let authorities = self.client_ca.clone()?;
        Some(Callers { authorities, names: self.client_name.clone() })
    }
}

/// Where certificates come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Source {
    /// The webhook makes them, and keeps its authorities in the Secret.
    Own,
    /// cert-manager keeps one, with its authority, in the Secret; the webhook only reads it.
    Secret,
}

/// The certificates.
#[derive(Debug, Args)]
pub(crate) struct CertificateArgs {
    /// Where certificates come from.
    #[arg(long = "certificates", value_enum, default_value_t = Source::Own)]
    pub(crate) source: Source,
    /// The namespace of the Service and of the Secret.
    #[arg(long, env = "POD_NAMESPACE", default_value = "sourcepreserve-system")]
    pub(crate) namespace: String,
    /// The Service by which API servers find the webhook.
    #[arg(long, default_value = "sourcepreserve-webhook")]
    pub(crate) service: String,
    /// The Secret of the authorities, or of the certificate.
    #[arg(long, default_value = "sourcepreserve-webhook-ca")]
    pub(crate) secret: String,
    /// How long an authority lives; after two thirds of it the next one comes.
    #[arg(long, default_value = "365d", value_parser = duration::parse)]
    ca_lifetime: Duration,
    /// How long the certificate of a replica lives; after two thirds of it the replica signs another.
    #[arg(long, default_value = "7d", value_parser = duration::parse)]
    leaf_lifetime: Duration,
    /// Within this time every replica and every API server has seen what was written.
    #[arg(long, default_value = "5m", value_parser = duration::parse)]
    overlap: Duration,
}

impl CertificateArgs {
    pub(crate) fn lifetimes(&self) -> Result<Lifetimes, LifetimesError> {
        Lifetimes::new(self.ca_lifetime, self.leaf_lifetime, self.overlap)
    }

    /// The name by which API servers call the webhook.
    pub(crate) fn server(&self) -> String {
        format!("{}.{}.svc", self.service, self.namespace)
    }
}
