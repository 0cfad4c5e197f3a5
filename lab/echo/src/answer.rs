//! What a caller is told. Pure: the servers in `serve` fill it in and send it, scenarios assert on its JSON.

use std::{
    collections::BTreeMap,
    env,
    net::{IpAddr, SocketAddr},
};

use hyper::HeaderMap;
use serde::Serialize;

/// The most of a datagram that is sent back as text, so that the answer fits into one datagram however it is
/// escaped.
const PAYLOAD_TEXT: usize = 1024;

/// Where the server runs, as the downward API tells it; a variable that is not set is left out of the answer.
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

/// The two ends of a connection or datagram, with IPv4 always in its plain form.
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
}

/// One answer: who asked, who answered, and what the protocol adds.
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

/// What `Answer` needs to know of an HTTP request.
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

    /// The answer as JSON on one line, with the newline that ends it.
    pub(crate) fn line(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// A dual-stack socket reports IPv4 peers as `::ffff:a.b.c.d`; nobody wants to assert on that.
fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        // Left alone, since it may carry a scope.
        IpAddr::V6(_) => address,
    }
}

/// Headers by lower-case name; those sent more than once are joined with commas, which means the same.
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
