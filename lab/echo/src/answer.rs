//! The answer to a caller. Pure: the servers in `serve` fill it in and send it; tests assert on its
//! JSON.

use std::{
    collections::BTreeMap,
    env,
    net::{IpAddr, SocketAddr},
};

use hyper::HeaderMap;
use serde::Serialize;

/// The limit for text from a datagram, so that the answer fits into one datagram even if every byte
/// is escaped.
const PAYLOAD_TEXT: usize = 1024;

/// Where the server runs, from the downward API. Variables that are not set are omitted from the
/// answer.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Place {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod_ip: Option<String>,
}

impl Place {
    pub(crate) fn from_env() -> Self {
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            pod: variable("POD_NAME"),
            namespace: variable("POD_NAMESPACE"),
            node: variable("NODE_NAME"),
            pod_ip: variable("POD_IP"),
        }
    }
}

/// The two ends of a connection or datagram. IPv4 addresses are never IPv4-mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ends {
    peer: SocketAddr,
    peer_ip: IpAddr,
    local: SocketAddr,
}

impl Ends {
    pub(crate) fn new(peer: SocketAddr, local: SocketAddr) -> Self {
        let peer = plain(peer);
        Self { peer, peer_ip: peer.ip(), local: plain(local) }
    }

    /// The address of the peer.
    pub(crate) fn peer_ip(&self) -> IpAddr {
        self.peer_ip
    }
}

/// One answer: the peer, the server, and fields that depend on the protocol.
#[derive(Debug, Serialize)]
pub(crate) struct Answer<'a> {
    #[serde(flatten)]
    seen: Seen,
    #[serde(flatten)]
    ends: Ends,
    #[serde(flatten)]
    place: &'a Place,
}

#[derive(Debug, Serialize)]
#[serde(tag = "proto", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum Seen {
    Http {
        method: String,
        path: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        headers: BTreeMap<String, String>,
        body_bytes: usize,
    },
    Tcp,
    Udp {
        payload: String,
        payload_bytes: usize,
    },
}

/// The parts of an HTTP request that `Answer` needs.
pub(crate) struct HttpRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body_bytes: usize,
}

impl<'a> Answer<'a> {
    pub(crate) fn http(request: &HttpRequest<'_>, ends: Ends, place: &'a Place) -> Self {
        let headers = joined(request.headers);
        let seen = Seen::Http {
            method: request.method.to_owned(),
            path: request.path.to_owned(),
            host: headers.get("host").cloned(),
            headers,
            body_bytes: request.body_bytes,
        };
        Self { seen, ends, place }
    }

    pub(crate) fn tcp(ends: Ends, place: &'a Place) -> Self {
        Self { seen: Seen::Tcp, ends, place }
    }

    pub(crate) fn udp(payload: &[u8], ends: Ends, place: &'a Place) -> Self {
        let text = &payload[..payload.len().min(PAYLOAD_TEXT)];
        let seen =
            Seen::Udp { payload: String::from_utf8_lossy(text).into_owned(), payload_bytes: payload.len() };
        Self { seen, ends, place }
    }

    /// The answer as one line of JSON, with a newline.
    pub(crate) fn line(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// Unmaps IPv4 addresses, which a dual-stack socket reports as `::ffff:a.b.c.d`.
fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        // Unchanged, because it may have a scope id.
        IpAddr::V6(_) => address,
    }
}

/// Headers by lower-case name. Repeated headers are joined with commas, which is equivalent.
fn joined(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut all = BTreeMap::<String, String>::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        all.entry(name.as_str().to_owned())
            .and_modify(|earlier| {
                earlier.push_str(", ");
                earlier.push_str(&value);
            })
            .or_insert_with(|| value.clone().into_owned());
    }
    all
}

#[cfg(test)]
mod tests;
