//! What was read from a pod's network namespace, as one document: the bytes of the kernel, unread.
//! `pod-redirect read` writes it, `kubectl isp rules` reads it.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The contents of a network namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dump {
    /// The address of the pod, by which the namespace was found.
    pub pod_ip: IpAddr,
    /// Netlink messages: the tables, chains, rules, sets and elements of `nf_tables`.
    pub packet_rules: Bytes,
    /// The tables of iptables-legacy.
    pub legacy_tables: Vec<LegacyTable>,
    /// Netlink messages: interfaces, addresses, routes and routing rules.
    pub routing: Bytes,
}

/// A table of iptables-legacy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegacyTable {
    /// The family.
    pub family: LegacyFamily,
    /// The name.
    pub name: String,
    /// Where in the entries each hook begins, in the order of the kernel: prerouting, input,
    /// forward, output, postrouting.
    pub hooks: [Option<u32>; 5],
    /// The entries.
    pub entries: Bytes,
}

/// The family of a table of iptables-legacy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LegacyFamily {
    /// IPv4.
    Ip,
    /// IPv6.
    Ip6,
}

/// Bytes; base64 in a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        STANDARD.decode(text.as_bytes()).map(Self).map_err(de::Error::custom)
    }
}
