//! The init container of a pod with a proxy of its own. It programs the pod's network namespace,
//! prints the rules and ends. As `pod-redirect read`, it is the helper of `kubectl isp rules`.
//!
//! The settings, the rules and the routing are `isp_dataplane::redirect`'s; `namespace` reads what
//! they depend on, and `program` brings them into the kernel, all or nothing. `read` lists what
//! another pod has.

mod namespace;
mod program;
mod read;
mod report;

use isp_dataplane::redirect::{ArgumentError, Settings};
use thiserror::Error;

use namespace::NamespaceError;
use program::{ProgramError, Wanted};
use read::ReadError;

/// The text of `--help`.
pub const HELP: &str = include_str!("help.txt");
/// The text of `--version`.
pub const VERSION: &str = concat!("pod-redirect ", env!("CARGO_PKG_VERSION"), "\n");

/// Why the pod is as it was before.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum Error {
    #[error("{0}\nNothing was changed. `pod-redirect --help` lists the options.")]
    Argument(#[from] ArgumentError),
    #[error("{0}\nNothing was changed.")]
    Namespace(#[from] NamespaceError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Programs the network namespace of this process, and returns what is in force then, as text. With
/// `read` as first argument, returns what the namespace of another pod has.
pub fn run(arguments: Vec<String>) -> Result<String, Error> {
    if let Some((read::COMMAND, rest)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return Ok(read::read(rest)?);
    }
    let settings = Settings::parse(arguments)?;
    let families = namespace::families()?;
    let wanted = Wanted::of(&settings, &families, namespace::cgroup_id)?;
    wanted.program()?;
    Ok(report::text(&wanted))
}
