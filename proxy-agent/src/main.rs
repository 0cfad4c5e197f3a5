//! `proxy-agent`

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use isp_proxy_agent::{FilterArgs, filter, hold};
use isp_runtime::last_words;
use isp_runtime::telemetry::LogArgs;

/// The agent of a node outside the ingress pool.
#[derive(Debug, Parser)]
#[command(name = "proxy-agent", version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    log: LogArgs,
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Stand between the node's stock kube-proxy and the API server, and narrow what it sees.
    Filter(Box<FilterArgs>),
    /// Do nothing until a signal comes. A pod that holds this image on a node runs it.
    Hold,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(error) = cli.log.init() {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    let ended = match cli.mode {
        Mode::Filter(arguments) => filter(*arguments).await,
        Mode::Hold => hold().await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "the agent ends");
            last_words::leave(&error);
            ExitCode::FAILURE
        }
    }
}
