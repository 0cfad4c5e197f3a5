//! The command line: the commands, and the exit code.

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::bench::Bench;
use crate::image::Program;
use crate::release::{Home, Registry};
use crate::soak::Campaign;
use crate::test::Layer;
use crate::workspace::Workspace;
use crate::{bench, directions, generated, image, lab, lint, reference, release, soak, test, tools};

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
    /// Write the generated files: crds/*.yaml, docs/api.md, the templates of the Helm chart, and
    /// the dependencies of the crates in docs/ARCHITECTURE.md
    Generate,
    /// Build the programs of the images for this machine and pack them as one OCI archive, without
    /// Docker
    Image {
        /// The registry in the names of the images
        #[arg(long, default_value = Registry::IN_MANIFESTS)]
        registry: Registry,
        /// The archive
        #[arg(long, value_name = "FILE", default_value = "target/images.tar")]
        out: PathBuf,
        /// The programs; all by default
        #[arg(value_enum)]
        programs: Vec<Program>,
    },
    /// Make a release in a directory: images, manifests, chart, plugin, SBOMs, checksums,
    /// provenance
    Release {
        /// The registry that the images will be pulled from. By default they have a name that no
        /// registry has, and are loaded on the nodes
        #[arg(long, default_value = Registry::IN_MANIFESTS)]
        registry: Registry,
        /// The URL of the repository, for links and downloads
        #[arg(long, value_name = "URL", default_value = Home::IN_CARGO)]
        home: Home,
        /// The directory. That of an earlier release is replaced
        #[arg(long, value_name = "DIR", default_value = "dist")]
        out: PathBuf,
    },
    /// Copy the images of a release to the registry that they are named after, with skopeo
    Push {
        /// The directory of the release
        #[arg(long, value_name = "DIR", default_value = "dist")]
        from: PathBuf,
        /// Additional arguments of `skopeo copy`
        #[arg(last = true)]
        arguments: Vec<OsString>,
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
        /// Measure less, to try the benchmark; its figures say little
        #[arg(long)]
        quick: bool,
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
            directions::table::write(&workspace)?;
            true
        }
        Task::Image { registry, out, programs } => {
            image::run(&workspace, &registry, &out, &programs)?;
            true
        }
        Task::Release { registry, home, out } => {
            release::run(&workspace, registry, home, &out)?;
            true
        }
        Task::Push { from, arguments } => {
            release::push::run(&from, &arguments)?;
            true
        }
        Task::Test { layers } => test::run(&workspace, &layers),
        Task::Soak { campaign } => {
            soak::run(&workspace, campaign)?;
            true
        }
        Task::Bench { bench, quick } => {
            bench::run(&workspace, bench, quick)?;
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
