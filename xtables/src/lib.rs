//! The tables of iptables-legacy in the network namespace of the calling thread, as the kernel has
//! them. `isp-pod-rules` knows what the bytes mean.
//!
//! The kernel hands them out by `getsockopt` only, which no safe wrapper offers for options of this
//! kind. `call` has that one call, and is the only unsafe code of the project (ADR 22).
//!
//! Asking for a table creates it. So [`tables`] first reads from `/proc` which ones exist, and a
//! namespace without legacy tables stays without.

mod call;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use thiserror::Error;

use call::get_option;

/// The number of places in the kernel's network stack at which tables are called.
pub const HOOKS: usize = 5;

/// `IPT_SO_GET_INFO` and `IPT_SO_GET_ENTRIES`, and the same of IPv6.
const GET_INFO: i32 = 64;
const GET_ENTRIES: i32 = 65;
const NAME_LENGTH: usize = 32;
/// The byte length of `struct ipt_getinfo`, and of the header of `struct ipt_get_entries`.
const INFO_LENGTH: usize = 84;
const ENTRIES_HEADER: usize = 40;
/// More than any pod has, and few enough for a log.
const LARGEST: u32 = 4 * 1024 * 1024;
/// How often a table is read because it changed meanwhile.
const ATTEMPTS: usize = 10;

/// The family of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    Ip,
    /// IPv6.
    Ip6,
}

impl Family {
    fn names(self) -> &'static str {
        match self {
            Self::Ip => "/proc/thread-self/net/ip_tables_names",
            Self::Ip6 => "/proc/thread-self/net/ip6_tables_names",
        }
    }

    fn level(self) -> i32 {
        match self {
            Self::Ip => libc::SOL_IP,
            Self::Ip6 => libc::SOL_IPV6,
        }
    }

    fn address_family(self) -> AddressFamily {
        match self {
            Self::Ip => AddressFamily::Inet,
            Self::Ip6 => AddressFamily::Inet6,
        }
    }
}

/// Why a table could not be read.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum ReadError {
    #[error("cannot read {path}: {source}; mount /proc in this container")]
    Names { path: &'static str, source: io::Error },
    #[error("cannot open a socket to read the tables of iptables-legacy: {0}")]
    Socket(Errno),
    #[error("cannot read table {table} of iptables-legacy: {errno}; this needs CAP_NET_ADMIN")]
    Table { table: String, errno: Errno },
    #[error("table {table} of iptables-legacy has {size} bytes, more than the {LARGEST} that are read")]
    TooLarge { table: String, size: u32 },
    #[error("table {table} of iptables-legacy changed {ATTEMPTS} times while it was being read")]
    Changing { table: String },
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// `nat`, `mangle`, `raw`, `filter` or `security`.
    pub name: String,
    /// Where in the entries each hook begins; `None` if the table has no chain there.
    pub hooks: [Option<u32>; HOOKS],
    /// `struct ipt_entry` or `struct ip6t_entry`, one after the other.
    pub entries: Vec<u8>,
}

/// The tables that exist in the network namespace of this thread.
pub fn tables(family: Family) -> Result<Vec<Table>, ReadError> {
    let path = family.names();
    let names = match fs::read_to_string(path) {
        Ok(names) => names,
        // The kernel has no iptables-legacy.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(ReadError::Names { path, source }),
    };
    if names.trim().is_empty() {
        return Ok(Vec::new());
    }
    let socket = socket(family.address_family(), SockType::Datagram, SockFlag::SOCK_CLOEXEC, None);
    let socket = socket.map_err(ReadError::Socket)?;
    names.split_whitespace().map(|name| table(family, &socket, name)).collect()
}

fn table(family: Family, socket: &OwnedFd, name: &str) -> Result<Table, ReadError> {
    let failed = |errno| ReadError::Table { table: name.to_owned(), errno };
    for _ in 0..ATTEMPTS {
        let mut info = named(name, INFO_LENGTH);
        get_option(socket, family.level(), GET_INFO, &mut info).map_err(failed)?;
        let number = |place: usize| read_number(&info, place);
        let size = number(80);
        if size > LARGEST {
            return Err(ReadError::TooLarge { table: name.to_owned(), size });
        }
        let mut entries = named(name, ENTRIES_HEADER + usize::try_from(size).unwrap_or_default());
        entries[NAME_LENGTH..NAME_LENGTH + 4].copy_from_slice(&size.to_ne_bytes());
        match get_option(socket, family.level(), GET_ENTRIES, &mut entries) {
            Ok(_) => {}
            // The table was replaced by one of another size.
            Err(Errno::EAGAIN | Errno::EINVAL) => continue,
            Err(errno) => return Err(failed(errno)),
        }
        let valid = number(NAME_LENGTH);
        let hooks = std::array::from_fn(|hook| {
            (valid & (1 << hook) != 0).then(|| number(NAME_LENGTH + 4 + 4 * hook))
        });
        return Ok(Table { name: name.to_owned(), hooks, entries: entries.split_off(ENTRIES_HEADER) });
    }
    Err(ReadError::Changing { table: name.to_owned() })
}

/// A buffer that begins with the name of a table.
fn named(table: &str, length: usize) -> Vec<u8> {
    let mut buffer = vec![0; length];
    // A name is ended by a zero byte.
    let length = table.len().min(NAME_LENGTH - 1);
    buffer[..length].copy_from_slice(&table.as_bytes()[..length]);
    buffer
}

fn read_number(bytes: &[u8], place: usize) -> u32 {
    let bytes = bytes.get(place..).and_then(|bytes| bytes.first_chunk::<4>());
    bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}
