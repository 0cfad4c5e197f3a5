//! The command line: the commands, and the exit code.

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::bench::Bench;
use crate::image::Program;
use crate::soak::Campaign;
use crate::test::Layer;
use crate::workspace::Workspace;
use crate::{bench, generated, image, lab, lint, reference, soak, test, tools};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "The project's own commands")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run all static checks: format, crate directions, dependencies, clippy, generated files, docs
    Lint {
        /// Also check for known vulnerabilities; fetches the advisory database over the network
        #[arg(long)]
        advisories: bool,
    },
    /// Write the generated files: crds/*.yaml, docs/api.md, and the templates of the Helm chart
    Generate,
    /// Build the release programs and pack each as an OCI image archive, without Docker
    Image {
        /// The directory for the archives
        #[arg(long, value_name = "DIR", default_value = "target/images")]
        out: PathBuf,
        /// The programs; all by default
        #[arg(value_enum)]
        programs: Vec<Program>,
    },
    /// Run tests, layer by layer; without a layer: set-up, lint, then every layer
    Test {
        /// The layers to run
        #[arg(value_enum)]
        layers: Vec<Layer>,
    },
    /// Run a long campaign at full length; the test layers run a short form of it
    Soak {
        /// The campaign
        #[arg(value_enum)]
        campaign: Campaign,
    },
    /// Measure on this machine and print the figures next to their budgets
    Bench {
        /// The benchmark
        #[arg(value_enum)]
        bench: Bench,
    },
    /// Run the demo on a real cluster on this machine; `cargo xtask demo --help` lists its options
    #[command(disable_help_flag = true)]
    Demo {
        /// Arguments for the demo
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Build the lab's programs and pass all arguments to `isp-lab`; `cargo xtask lab --help` lists
    /// them
    #[command(disable_help_flag = true)]
    Lab {
        /// Arguments for `isp-lab`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

/// Parses the command line and runs the command.
pub(crate) fn main() -> ExitCode {
    match perform(Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}", chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// Runs a command. `Ok(false)` means that a check or test failed and has reported it.
fn perform(task: Task) -> Result<bool, Box<dyn Error>> {
    let workspace = Workspace::read()?;
    // Building the webhook needs `make`; without it, the build fails with an obscure error.
    tools::make()?;
    Ok(match task {
        Task::Lint { advisories } => lint::run(&workspace, advisories).is_clean(),
        Task::Generate => {
            generated::write(&workspace)?;
            reference::write(&workspace)?;
            true
        }
        Task::Image { out, programs } => {
            image::run(&workspace, &out, &programs)?;
            true
        }
        Task::Test { layers } => test::run(&workspace, &layers),
        Task::Soak { campaign } => {
            soak::run(&workspace, campaign)?;
            true
        }
        Task::Bench { bench } => {
            bench::run(&workspace, bench)?;
            true
        }
        Task::Demo { arguments } => return Err(lab::become_demo(&workspace, &arguments).into()),
        Task::Lab { arguments } => return Err(lab::become_lab(&workspace, &arguments).into()),
    })
}

/// An error and its sources, on one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
