//! `proxy-agent cleanup`: deletes the tables of mode Beside. The rules of an agent stay when it
//! ends; without a Service to serve it deletes them itself. This is for a node that an agent left
//! while it served, such as one that was removed by force.

use clap::Args;
use isp_dataplane::nft::{Family, Name, Table};
use isp_kernel::{Kernel, LoadError, SocketError};
use thiserror::Error;
use tracing::info;

/// The settings of the command.
#[derive(Debug, Args)]
pub struct CleanupArgs {
    /// Name of the nftables tables, one of each address family.
    #[arg(long, default_value = "ingress-source-preserve", value_parser = Name::parse)]
    table: Name,
}

/// Why the tables could not be deleted.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum CleanupError {
    #[error("cannot talk to nftables: {0}")]
    Socket(#[from] SocketError),
    #[error("cannot delete the tables {table}: {source}")]
    Delete { table: Name, source: LoadError },
}

/// Runs the command.
pub(crate) fn run(arguments: &CleanupArgs) -> Result<(), CleanupError> {
    delete_tables(&arguments.table)
}

/// Deletes the tables of this name in one transaction, whatever they have in them. It is no error
/// if there are none.
pub(crate) fn delete_tables(name: &Name) -> Result<(), CleanupError> {
    let table = |family| Table { family, name: name.clone(), sets: Vec::new(), chains: Vec::new() };
    let tables = Family::ALL.map(table);
    let mut kernel = Kernel::open()?;
    kernel
        .unload(&tables.iter().collect::<Vec<_>>())
        .map_err(|source| CleanupError::Delete { table: name.clone(), source })?;
    info!(table = name.as_str(), "the tables are gone");
    Ok(())
}
