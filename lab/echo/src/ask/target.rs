//! The destination: `host:port`, where the host is an address or a name. Resolves names and
//! connects.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use hyper::header::HeaderValue;
use tokio::net::{TcpSocket, TcpStream, lookup_host};

use super::failure::Failure;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The host, without brackets.
    host: String,
    port: u16,
}

#[derive(Debug, thiserror::Error)]
#[error("'{0}' is not HOST:PORT; an IPv6 address goes in brackets, as in [fd00::1]:8080")]
pub(crate) struct NotATarget(String);

impl FromStr for Target {
    type Err = NotATarget;

    fn from_str(text: &str) -> Result<Self, NotATarget> {
        let wrong = || NotATarget(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bracketed.unwrap_or(host);
        if host.is_empty() || bracketed.is_none() && host.contains(':') {
            return Err(wrong());
        }
        match port.parse() {
            Ok(port) if port > 0 => Ok(Self { host: host.to_owned(), port }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl Target {
    /// The first address of the same family as `bind`, or of any family.
    pub(crate) async fn look_up(&self, bind: Option<IpAddr>) -> Result<SocketAddr, Failure> {
        let mut addresses = lookup_host((self.host.as_str(), self.port))
            .await
            .map_err(|error| Failure::UnknownHost(format!("{}: {error}", self.host)))?;
        addresses.find(|address| bind.is_none_or(|bind| bind.is_ipv4() == address.is_ipv4())).ok_or_else(
            || Failure::UnknownHost(format!("{} has no address of the family of --bind", self.host)),
        )
    }

    pub(super) fn as_header(&self) -> Result<HeaderValue, Failure> {
        HeaderValue::from_str(&self.to_string()).map_err(|error| {
            Failure::Other(format!("cannot use {self} as the Host header: {error}; use --host-header"))
        })
    }
}

/// A new connection, from `bind` if given.
pub(super) async fn connect(address: SocketAddr, bind: Option<IpAddr>) -> Result<TcpStream, Failure> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(ip) = bind {
        socket.bind(SocketAddr::new(ip, 0)).map_err(|error| Failure::Bind(format!("{ip}: {error}")))?;
    }
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_written_alike() {
        for text in ["10.0.0.1:80", "[fd00::1]:8080", "echo.demo.svc:80"] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_target_is_refused_with_the_form_that_is() {
        for text in ["10.0.0.1", "fd00::1:80", "[fd00::1]", ":80", "[]:80", "a:0", "a:70000", "a:http"] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains("HOST:PORT"), "{text}: {error}");
        }
    }
}
