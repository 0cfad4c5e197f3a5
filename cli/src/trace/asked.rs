//! The words of `--from` and `--to`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use isp_paths::{Key, Source};

#[cfg(test)]
mod tests;

/// The client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceArg(pub(crate) Source);

/// The destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// A Service; its only port, if none is named.
    Service(Key, Option<u16>),
    /// A port of a node.
    Node(String, u16),
    Address(SocketAddr),
}

impl FromStr for SourceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let source = match text.split('/').collect::<Vec<_>>().as_slice() {
            ["pod" | "pods", namespace, name] if is_name(namespace) && is_name(name) => {
                Source::Pod(Key::new(*namespace, *name))
            }
            ["node" | "nodes", name] if is_name(name) => Source::Node((*name).to_owned()),
            [address] => Source::Outside(address.parse::<IpAddr>().map_err(|_| unknown_source())?),
            _ => return Err(unknown_source()),
        };
        Ok(Self(source))
    }
}

fn unknown_source() -> String {
    "expected pod/NAMESPACE/NAME, node/NAME or an address, for example pod/web/frontend-1 or 203.0.113.5"
        .to_owned()
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || {
            "expected svc/NAMESPACE/NAME[:PORT], node/NAME:PORT or ADDRESS:PORT, for example svc/web/frontend:443, \
             192.0.2.10:443 or [2001:db8::10]:443"
                .to_owned()
        };
        let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port != 0).ok_or_else(unknown);
        match text.split('/').collect::<Vec<_>>().as_slice() {
            ["svc" | "service" | "services", namespace, rest] if is_name(namespace) => {
                let (name, number) = match rest.split_once(':') {
                    Some((name, number)) => (name, Some(port(number)?)),
                    None => (*rest, None),
                };
                if is_name(name) {
                    Ok(Self::Service(Key::new(*namespace, name), number))
                } else {
                    Err(unknown())
                }
            }
            ["node" | "nodes", rest] => match rest.rsplit_once(':') {
                Some((name, number)) if is_name(name) => Ok(Self::Node(name.to_owned(), port(number)?)),
                _ => Err(unknown()),
            },
            [address] => {
                let address: SocketAddr = address.parse().map_err(|_| unknown())?;
                if address.port() == 0 { Err(unknown()) } else { Ok(Self::Address(address)) }
            }
            _ => Err(unknown()),
        }
    }
}

/// Whether it may be the name of an object.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
}

impl fmt::Display for SourceArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Outside(address) => write!(f, "{address}"),
            Source::Pod(key) => write!(f, "pod/{key}"),
            Source::Node(name) => write!(f, "node/{name}"),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(key, None) => write!(f, "svc/{key}"),
            Self::Service(key, Some(port)) => write!(f, "svc/{key}:{port}"),
            Self::Node(name, port) => write!(f, "node/{name}:{port}"),
            Self::Address(address) => write!(f, "{address}"),
        }
    }
}
