//! What the kernel can do, found by trying: a transaction that cannot succeed is refused as a
//! whole, and names every operation that would have failed.

use isp_dataplane::netlink::{Batch, Object, Ownership, TableId, Verb, creation, errno};
use isp_dataplane::nft::{Family, Name, Operation, Table};
use nix::sys::utsname::uname;
use thiserror::Error;

use crate::commit::{self, CommitError, Refusal};
use crate::socket::{Socket, SocketError};

/// What the kernel offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The release of the kernel.
    pub release: String,
    /// Whether tables can have an owner, and stay when it ends (Linux 6.9 and later).
    pub can_own: bool,
}

/// Why this kernel will not do.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// It refuses parts of the tables.
    #[error(
        "kernel {release} does not take the rules of this program, which needs Linux 5.6 or later with nf_tables, \
             its modules for nat, fib, numgen, reject and masquerade, and CAP_NET_ADMIN: {source}"
    )]
    Unsuitable {
        /// The release of the kernel.
        release: String,
        /// What it refuses.
        source: CommitError,
    },
    /// The kernel did not answer.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// The set whose deletion makes the transaction fail.
const NO_SET: &str = "there-is-no-such-set";

pub(crate) fn probe(socket: &mut Socket, tables: &[Table]) -> Result<Capabilities, ProbeError> {
    let release = uname().map_or_else(
        |_| "of unknown release".to_owned(),
        |name| name.release().to_string_lossy().into_owned(),
    );
    let mut batch = Batch::new();
    for table in tables {
        let name = Name::new(format!("{}-probe", table.name));
        let id = TableId { family: table.family, name, ownership: Ownership::Shared };
        batch.apply(&id, &creation(table));
        batch.apply(&id, &[Operation::DeleteSet(Name::constant(NO_SET))]);
    }
    if let Err(source) = would_succeed(socket, &batch) {
        return Err(ProbeError::Unsuitable { release, source });
    }

    let mut batch = Batch::new();
    let name = tables.first().map_or("probe", |table| table.name.as_str());
    let id = TableId {
        family: Family::Ip,
        name: Name::new(format!("{name}-probe")),
        ownership: Ownership::Exclusive,
    };
    batch.apply(&id, &[Operation::AddTable, Operation::DeleteSet(Name::constant(NO_SET))]);
    let can_own = match would_succeed(socket, &batch) {
        Ok(()) => true,
        Err(CommitError::Refused(_)) => false,
        Err(CommitError::Socket(error) | CommitError::Unknown(error)) => return Err(error.into()),
        Err(source) => return Err(ProbeError::Unsuitable { release, source }),
    };
    Ok(Capabilities { release, can_own })
}

/// Sends a batch that fails, and returns the failures other than the intended ones.
fn would_succeed(socket: &mut Socket, batch: &Batch) -> Result<(), CommitError> {
    if batch.is_empty() {
        return Ok(());
    }
    socket.room_for(batch.frame_length());
    let sequence = socket.reserve_sequences(batch.sequences());
    let frame = batch.frame(0..batch.len(), sequence, None);
    match commit::exchange(socket, batch, &frame) {
        Err(CommitError::Refused(mut refusals)) => {
            let all = refusals.len();
            refusals.retain(|refusal| !is_intended(refusal));
            match refusals.len() {
                0 if all > 0 => Ok(()),
                _ => Err(CommitError::Refused(refusals)),
            }
        }
        other => other.map(|_| ()),
    }
}

fn is_intended(refusal: &Refusal) -> bool {
    refusal.failure.errno == errno::ENOENT
        && refusal.subject.as_ref().is_some_and(|subject| {
            (subject.verb, subject.object) == (Verb::Delete, Object::Set) && subject.name == NO_SET
        })
}
