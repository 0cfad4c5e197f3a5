//! `proxy-agent`

use std::process::ExitCode;

use clap::Parser;
use isp_proxy_agent::Mode;
use isp_runtime::last_words;
use isp_runtime::telemetry::LogArgs;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The agent of a node that is not an ingress node.
#[derive(Debug, Parser)]
#[command(name = "proxy-agent", version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    log: LogArgs,
    #[command(subcommand)]
    mode: Mode,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(error) = cli.log.init() {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    match cli.mode.run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "the agent failed");
            last_words::leave(&error);
            ExitCode::FAILURE
        }
    }
}
