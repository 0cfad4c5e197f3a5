//! From the bytes of the kernel to rules and routing. Reading never panics, and whatever is not
//! known stays visible as unknown.

mod bytes;
mod expression;
mod legacy;
mod nf_tables;
mod numbers;
mod registers;
mod sets;
mod xt;

use isp_dataplane::netlink::Malformed;
use thiserror::Error;

use crate::dump::Dump;
use crate::routing::Routing;
use crate::rules::Ruleset;

/// Why a dump cannot be read.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// A message of netlink is not whole.
    #[error(transparent)]
    Netlink(#[from] Malformed),
    /// A table of iptables-legacy is not whole.
    #[error("table {table} of iptables-legacy cannot be read at byte {place}")]
    Legacy {
        /// The table.
        table: String,
        /// The place of the entry.
        place: usize,
    },
}

/// The rules and the routing of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodRules {
    /// The packet rules.
    pub ruleset: Ruleset,
    /// The routing.
    pub routing: Routing,
}

impl PodRules {
    /// Reads a dump.
    pub fn decode(dump: &Dump) -> Result<Self, DecodeError> {
        let routing = Routing::read(&dump.routing.0)?;
        let mut tables = nf_tables::read(&dump.packet_rules.0, &routing.links)?;
        for table in &dump.legacy_tables {
            tables.push(legacy::read(table)?);
        }
        Ok(Self { ruleset: Ruleset { tables }, routing })
    }
}

#[cfg(test)]
pub(crate) mod tests;
