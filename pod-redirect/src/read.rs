//! `pod-redirect read`: prints what the network namespace of a running pod has, as one line of
//! JSON.
//!
//! It runs in a helper pod that sees the node's `/var/run/netns`. It finds the namespace by the
//! pod's address, enters it on a thread, and lists packet rules and routing. It changes nothing
//! there, and interprets nothing: `isp-pod-rules` does, in the program that asked.

mod arguments;
mod search;

use isp_kernel::{Lister, SocketError};
use isp_pod_rules::dump::{Bytes, Dump, LegacyFamily, LegacyTable};
use isp_xtables::Family;
use thiserror::Error;

use arguments::{Arguments, ReadArgumentError};
use search::{Namespaces, SearchError};

/// The word that asks for it.
pub(crate) const COMMAND: &str = "read";

/// The rules of a pod take some ten kilobytes. A document larger than this is refused, so that it
/// fits into a container's log.
const LARGEST: usize = 4 * 1024 * 1024;

/// Why there is no document.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum ReadError {
    #[error("{0}\n`pod-redirect --help` lists the options.")]
    Argument(#[from] ReadArgumentError),
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error("cannot list the packet rules: {0}")]
    PacketRules(#[source] SocketError),
    #[error(transparent)]
    LegacyTables(#[from] isp_xtables::ReadError),
    #[error("cannot list the routing: {0}")]
    Routing(#[source] SocketError),
    #[error("the namespace has {0} bytes of rules, more than the {LARGEST} that are printed")]
    TooLarge(usize),
    #[error("cannot write the document: {0}")]
    Write(#[from] serde_json::Error),
}

/// Reads the namespace of the pod. Returns the document.
pub(crate) fn read(arguments: &[String]) -> Result<String, ReadError> {
    let Arguments { pod_ip, directory } = Arguments::parse(arguments)?;
    let namespaces = Namespaces::list(&directory)?;
    let dump = namespaces.of(pod_ip, |lister| contents(pod_ip, lister))??;
    Ok(serde_json::to_string(&dump)? + "\n")
}

/// Lists the network namespace of this thread.
fn contents(pod_ip: std::net::IpAddr, lister: &mut Lister) -> Result<Dump, ReadError> {
    let packet_rules = lister.packet_rules().map_err(ReadError::PacketRules)?;
    let routing = lister.all_routing().map_err(ReadError::Routing)?;
    let mut legacy_tables = Vec::new();
    for (family, name) in [(Family::Ip, LegacyFamily::Ip), (Family::Ip6, LegacyFamily::Ip6)] {
        legacy_tables.extend(isp_xtables::tables(family)?.into_iter().map(|table| LegacyTable {
            family: name,
            name: table.name,
            hooks: table.hooks,
            entries: Bytes(table.entries),
        }));
    }
    let legacy: usize = legacy_tables.iter().map(|table| table.entries.0.len()).sum();
    let size = packet_rules.len() + routing.len() + legacy;
    if size > LARGEST {
        return Err(ReadError::TooLarge(size));
    }
    Ok(Dump { pod_ip, packet_rules: Bytes(packet_rules), legacy_tables, routing: Bytes(routing) })
}
