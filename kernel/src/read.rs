//! Tables as the kernel has them.

use std::hash::{DefaultHasher, Hash, Hasher};

use isp_dataplane::netlink::{
    Difference, Elements, FoundTable, Image, Malformed, Message, Ownership, Query, errno, read_generation,
};
use isp_dataplane::nft::{Element, Set, Table};
use thiserror::Error;

use crate::socket::{Asked, Socket, SocketError};

/// How often a list of all tables or chains is asked for because it changed meanwhile.
const ATTEMPTS: u32 = 10;

/// Why a table could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The kernel did not answer usefully.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// Another process owns the table.
    #[error(
        "another process owns table {table} (netlink port {port}, usually its process id); stop that process"
    )]
    AnotherOwner {
        /// The family and name of the table.
        table: String,
        /// The port of the socket that owns it.
        port: u32,
    },
}

/// A table in the kernel, in comparison with the wanted one.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// There is no such table.
    Absent,
    /// There is one.
    Present {
        /// How its sets, chains and rules differ; `None` if they are as wanted.
        difference: Option<Difference>,
        /// The elements of all sets that are as wanted, those of dynamic sets included.
        elements: Vec<Element>,
    },
}

/// The current generation.
pub(crate) fn generation(socket: &mut Socket) -> Result<u32, SocketError> {
    let mut found = None;
    ask(socket, Query::Generation, |message| {
        found = read_generation(message)?.or(found);
        Ok(())
    })?;
    found.ok_or(SocketError::Interrupted { attempts: 1 })
}

fn ask(
    socket: &mut Socket,
    query: Query<'_>,
    each: impl FnMut(Message<'_>) -> Result<(), Malformed>,
) -> Result<Asked, SocketError> {
    let sequence = socket.next_sequence();
    socket.ask(&query.write(sequence), sequence, each)
}

/// Whether a table exists, with any content. Another process must not own it.
pub(crate) fn exists(socket: &mut Socket, table: &Table) -> Result<bool, ReadError> {
    Ok(find(socket, table)?.is_some())
}

fn find(socket: &mut Socket, wanted: &Table) -> Result<Option<FoundTable>, ReadError> {
    let name = wanted.name.as_str();
    for _ in 0..ATTEMPTS {
        let mut table = None;
        let asked = ask(socket, Query::Tables(wanted.family), |message| {
            table = table.take().or(FoundTable::read(message)?.filter(|found| found.name == name));
            Ok(())
        })?;
        if asked == Asked::Interrupted {
            continue;
        }
        let owner = table.as_ref().and_then(|table| table.owner);
        return match owner.filter(|port| *port != socket.port()) {
            Some(port) => {
                let table = format!("{} {name}", wanted.family.keyword());
                Err(ReadError::AnotherOwner { table, port })
            }
            None => Ok(table),
        };
    }
    Err(SocketError::Interrupted { attempts: ATTEMPTS }.into())
}

/// Reads a table. The caller makes sure that nobody changed it meanwhile; changes of other tables
/// do not matter. `None` if it was deleted meanwhile.
pub(crate) fn table(
    socket: &mut Socket,
    wanted: &Table,
    ownership: Ownership,
) -> Result<Option<Found>, ReadError> {
    let (family, name) = (wanted.family, &wanted.name);
    let Some(table) = find(socket, wanted)? else { return Ok(Some(Found::Absent)) };
    let mut image = chains(socket, wanted)?;
    for query in [Query::Rules(family, name), Query::Sets(family, name)] {
        if is_gone(ask(socket, query, |message| image.read(message, family, name)))? {
            return Ok(None);
        }
    }
    let is_exclusive = ownership == Ownership::Exclusive;
    let mut difference = (table.exclusive != is_exclusive).then_some(Difference::Ownership);
    difference = difference.or_else(|| Image::of(wanted).difference(&image));

    let mut all = Vec::new();
    for set in wanted.sets.iter().filter(|set| image.has(set, family)) {
        let Some((elements, foreign)) = elements(socket, wanted, set)? else { return Ok(None) };
        if foreign > 0 {
            let set = set.name.as_str().to_owned();
            difference.get_or_insert(Difference::ForeignElements { set, number: foreign });
        }
        all.extend(elements);
    }
    Ok(Some(Found::Present { difference, elements: all }))
}

/// The kernel lists the chains of all tables, so a change of any of them may hide one of ours.
fn chains(socket: &mut Socket, wanted: &Table) -> Result<Image, SocketError> {
    for _ in 0..ATTEMPTS {
        let mut image = Image::default();
        let query = Query::Chains(wanted.family);
        let asked = ask(socket, query, |message| image.read(message, wanted.family, &wanted.name))?;
        if asked == Asked::Consistent {
            return Ok(image);
        }
    }
    Err(SocketError::Interrupted { attempts: ATTEMPTS })
}

/// The elements of one set, and the number of those that it cannot have. `None` if it is gone.
///
/// The kernel sends a large set in parts and remembers by a count where it was. Some time after
/// many elements were added or deleted it resizes the hash table, which changes their order: a list
/// that it sends meanwhile lacks elements or has them twice, and nothing in it says so. So a set is
/// read until two lists have the same order. Packets change a dynamic set at any time, and its
/// users expect that.
pub(crate) fn elements(
    socket: &mut Socket,
    table: &Table,
    set: &Set,
) -> Result<Option<(Vec<Element>, usize)>, SocketError> {
    let mut before = None;
    for _ in 0..ATTEMPTS {
        let Some(read) = elements_once(socket, table, set)? else { return Ok(None) };
        let now = Some(fingerprint(&read.0));
        if set.dynamic || set.interval || now == before {
            return Ok(Some(read));
        }
        before = now;
    }
    Err(SocketError::Interrupted { attempts: ATTEMPTS })
}

fn elements_once(
    socket: &mut Socket,
    table: &Table,
    set: &Set,
) -> Result<Option<(Vec<Element>, usize)>, SocketError> {
    let mut reading = Elements::of(set, table.family);
    let query = Query::Elements(table.family, &table.name, &set.name);
    let gone = is_gone(ask(socket, query, |message| reading.read(message)))?;
    Ok((!gone).then(|| reading.finish()))
}

/// Tells lists of elements apart, without keeping them.
fn fingerprint(elements: &[Element]) -> u64 {
    let mut hasher = DefaultHasher::new();
    elements.hash(&mut hasher);
    hasher.finish()
}

fn is_gone(asked: Result<Asked, SocketError>) -> Result<bool, SocketError> {
    match asked {
        Ok(_) => Ok(false),
        Err(SocketError::Refused(failure)) if failure.errno == errno::ENOENT => Ok(true),
        Err(error) => Err(error),
    }
}
