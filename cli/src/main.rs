//! `kubectl isp`

use std::process::ExitCode;

use clap::Parser;
use isp_cli::{Cli, complete, progress, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    // Before the command line is parsed: the words to complete are no valid command line yet.
    if let Some(words) = complete::words(std::env::args_os().map(|word| word.to_string_lossy().into_owned()))
    {
        complete::run(&words);
        return ExitCode::SUCCESS;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // The pipe may be closed. clap's own exit code 2 has another meaning here.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    match run(cli).await {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            progress::end();
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
