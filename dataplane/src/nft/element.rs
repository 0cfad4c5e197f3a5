//! Elements of sets and maps.

use std::net::IpAddr;

use super::{Handle, Name, Protocol, Verdict};

/// One element of a set or map.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Element {
    /// The set.
    pub set: Name,
    /// The key, or the first key of a range.
    pub key: Key,
    /// The last key of a range. Elements of interval sets always have it, other elements never.
    pub last: Option<Key>,
    /// The data, if the set is a map.
    pub data: Data,
}

/// The values of a key, one for each field of the set.
pub type Key = Vec<Value>;

/// The data of an element.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Data {
    /// An element of a set.
    None,
    /// One value for each data field of the map.
    Values(Vec<Value>),
    /// An element of a verdict map.
    Verdict(Verdict),
}

/// The value of one field. A concatenation pads each to four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// An address of the table's family, in network order.
    Address(IpAddr),
    /// A protocol number, one byte.
    Protocol(Protocol),
    /// A port, in network order.
    Port(u16),
    /// A value of `meta priority`, in host order.
    Handle(Handle),
    /// A number made by `numgen`, in host order.
    Index(u32),
}
