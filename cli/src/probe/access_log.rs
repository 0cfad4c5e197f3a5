//! The source IP in a line of a gateway's access log. Pure.
//!
//! A line is found by a path that only one cell has requested. Known are the formats of Istio's
//! gateways (text and JSON), and those that begin with the client's address, as NGINX, Apache,
//! HAProxy and Traefik write them.

use std::net::{IpAddr, SocketAddr};

use serde_json::Value;

#[cfg(test)]
mod tests;

/// Names of the field with the client's address, in logs as JSON.
const FIELDS: [&str; 7] = [
    "downstream_remote_address",
    "downstream_direct_remote_address",
    "remote_addr",
    "remote_address",
    "client_ip",
    "ClientHost",
    "ClientAddr",
];
/// The place of the client's address among the last, unquoted words of Istio's text format.
const ENVOY_PLACE: usize = 3;

/// The sources of the lines with this marker.
pub(crate) fn sources(log: &str, marker: &str) -> Vec<IpAddr> {
    let mut found: Vec<IpAddr> =
        log.lines().filter(|line| line.contains(marker)).filter_map(source).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn source(line: &str) -> Option<IpAddr> {
    let line = line.trim();
    if line.starts_with('{') {
        let line: Value = serde_json::from_str(line).ok()?;
        return FIELDS.iter().find_map(|field| address(line.get(field)?.as_str()?));
    }
    if line.starts_with('[') {
        // The last quoted word is the upstream host.
        let (_, words) = line.rsplit_once('"')?;
        return address(words.split_whitespace().nth(ENVOY_PLACE)?);
    }
    address(line.split_whitespace().next()?)
}

fn address(text: &str) -> Option<IpAddr> {
    let with_port = text.parse::<SocketAddr>().map(|address| address.ip());
    with_port.or_else(|_| text.parse()).ok().map(|ip: IpAddr| ip.to_canonical())
}
