//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use isp_runtime::duration;
use isp_runtime::telemetry::LogArgs;

use crate::certs::{Lifetimes, LifetimesError};
use crate::serve::Callers;

/// The published image of this version.
const REDIRECT_IMAGE: &str =
    concat!("localhost/ingress-source-preserve/pod-redirect:", env!("CARGO_PKG_VERSION"));

/// Admission webhook for pods and IngressSourcePreserves.
#[derive(Debug, Parser)]
#[command(name = "webhook", version, arg_required_else_help = true)]
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
    /// Serve until a signal requests the shutdown.
    Run(RunArgs),
}

/// `webhook run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Listen address for API servers; `[::]` listens on all IPv4 and IPv6 addresses.
    #[arg(long, default_value = "[::]:8443")]
    pub(crate) listen: SocketAddr,
    /// Listen address for /healthz, /readyz and /metrics.
    #[arg(long, default_value = "[::]:8080")]
    pub(crate) admin: SocketAddr,
    /// Require client certificates signed by one of the CAs in this file. API servers get theirs
    /// from --admission-control-config-file.
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Require this common name or DNS name in the client certificate. Repeat it to allow several.
    /// Without it, every certificate of the CAs is accepted.
    #[arg(long, value_name = "NAME", requires = "client_ca")]
    client_name: Vec<String>,
    /// The image of the init container that redirects a pod's connections to the pod's own proxy.
    /// Its pods pull it with their own image pull secrets.
    #[arg(long, env = "REDIRECT_IMAGE", default_value = REDIRECT_IMAGE)]
    pub(crate) redirect_image: String,
    #[command(flatten)]
    pub(crate) certificates: CertificateArgs,
}

impl RunArgs {
    /// The client certificates to require; None accepts every caller.
    pub(crate) fn callers(&self) -> Option<Callers> {
        let authorities = self.client_ca.clone()?;
        Some(Callers { authorities, names: self.client_name.clone() })
    }
}

/// The source of certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Source {
    /// The webhook creates them, and stores its CAs in the Secret.
    Own,
    /// cert-manager stores the certificate and its CA in the Secret; the webhook only reads it.
    Secret,
}

/// Certificate options.
#[derive(Debug, Args)]
pub(crate) struct CertificateArgs {
    /// The source of certificates.
    #[arg(long = "certificates", value_enum, default_value_t = Source::Own)]
    pub(crate) source: Source,
    /// The namespace of the Service and the Secret.
    #[arg(long, env = "POD_NAMESPACE", default_value = "sourcepreserve-system")]
    pub(crate) namespace: String,
    /// The Service through which API servers reach the webhook.
    #[arg(long, default_value = "sourcepreserve-webhook")]
    pub(crate) service: String,
    /// The Secret with the CAs, or with the certificate.
    #[arg(long, default_value = "sourcepreserve-webhook-ca")]
    pub(crate) secret: String,
    /// Lifetime of a CA; the rotation starts after two thirds of it.
    #[arg(long, default_value = "365d", value_parser = duration::parse)]
    ca_lifetime: Duration,
    /// Lifetime of a replica's certificate; it is renewed after two thirds of it.
    #[arg(long, default_value = "7d", value_parser = duration::parse)]
    leaf_lifetime: Duration,
    /// Maximum time for a write to reach every replica and every API server.
    #[arg(long, default_value = "5m", value_parser = duration::parse)]
    overlap: Duration,
}

impl CertificateArgs {
    pub(crate) fn lifetimes(&self) -> Result<Lifetimes, LifetimesError> {
        Lifetimes::new(self.ca_lifetime, self.leaf_lifetime, self.overlap)
    }

    /// The DNS name that API servers use for the webhook.
    pub(crate) fn server(&self) -> String {
        format!("{}.{}.svc", self.service, self.namespace)
    }
}
