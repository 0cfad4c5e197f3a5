//! The `operator` binary.

use std::process::ExitCode;

use clap::Parser;
use isp_operator::{Cli, Command, cleanup, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(error) = cli.log.init() {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    match cli.command {
        Command::Run(arguments) => {
            if let Err(error) = run(arguments).await {
                tracing::error!(%error, "the operator failed");
                return ExitCode::FAILURE;
            }
        }
        Command::Cleanup(arguments) => {
            if let Err(error) = cleanup(arguments).await {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
