//! The `webhook` binary.

use std::process::ExitCode;

use clap::Parser;
use isp_webhook::{Cli, Command, run};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(error) = cli.log.init() {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    let Command::Run(arguments) = cli.command;
    if let Err(error) = run(arguments).await {
        tracing::error!(%error, "the webhook failed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
