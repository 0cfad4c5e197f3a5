//! Decides which headers pass in each direction. Only known request headers do, so that no client
//! can impersonate another user. No header about a connection crosses to another connection.

use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
    HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};

use crate::filter::wire::Format;

const FORWARDED: [HeaderName; 5] = [ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, USER_AGENT];
const CONNECTION_HEADERS: [HeaderName; 6] = [
    CONNECTION,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("trailer"),
];
const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// How the agent handles the body of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyHandling {
    /// Forwards it in any encoding.
    Pass,
    /// Follows how much kube-proxy has received, in any format.
    Follow,
    /// Rewrites a list in this format.
    RewriteList(Format),
    /// Rewrites a watch in this format.
    RewriteWatch(Format),
}

/// The encoding of a response that the agent can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Encoding {
    pub(super) format: Format,
    pub(super) compressed: bool,
}

/// Returns the headers of the request to the API server.
pub(super) fn upstream_headers(received: &HeaderMap, handling: BodyHandling) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in FORWARDED {
        for value in received.get_all(&name) {
            headers.append(name.clone(), value.clone());
        }
    }
    match handling {
        BodyHandling::Pass => {}
        // Compression of single events saves little and delays each of them.
        BodyHandling::Follow => drop(headers.remove(ACCEPT_ENCODING)),
        BodyHandling::RewriteWatch(format) => {
            headers.remove(ACCEPT_ENCODING);
            headers.insert(ACCEPT, HeaderValue::from_static(format.media_type()));
        }
        // Compression shrinks a list to a tenth. The API server may be far; kube-proxy is local.
        BodyHandling::RewriteList(format) => {
            headers.insert(ACCEPT_ENCODING, GZIP);
            headers.insert(ACCEPT, HeaderValue::from_static(format.media_type()));
        }
    }
    headers
}

/// Removes the headers that describe the connection to the API server.
pub(super) fn remove_connection_headers(headers: &mut HeaderMap) {
    for name in CONNECTION_HEADERS {
        headers.remove(name);
    }
}

/// Removes the headers that are wrong for a body that the agent decompresses and rewrites.
pub(super) fn remove_body_headers(headers: &mut HeaderMap) {
    headers.remove(CONTENT_ENCODING);
    headers.remove(CONTENT_LENGTH);
}

/// Returns the encoding of a response, if the agent can read it.
pub(super) fn encoding(headers: &HeaderMap) -> Option<Encoding> {
    let compressed = match headers.get(CONTENT_ENCODING) {
        None => false,
        Some(encoding) if encoding == "identity" => false,
        Some(encoding) if encoding == GZIP => true,
        Some(_) => return None,
    };
    let media_type = headers.get(CONTENT_TYPE)?.to_str().ok()?.split(';').next()?.trim();
    let format =
        [Format::Protobuf, Format::Json].into_iter().find(|format| format.media_type() == media_type)?;
    Some(Encoding { format, compressed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn nobody_can_speak_for_someone_else() {
        let asked = headers(&[
            ("authorization", "Bearer kube-proxy"),
            ("impersonate-user", "system:admin"),
            ("impersonate-group", "system:masters"),
            ("x-remote-user", "system:admin"),
            ("x-forwarded-for", "10.0.0.1"),
            ("cookie", "a=b"),
            ("connection", "close"),
            ("user-agent", "kube-proxy/v1.37.0"),
        ]);
        let expected =
            headers(&[("authorization", "Bearer kube-proxy"), ("user-agent", "kube-proxy/v1.37.0")]);
        assert_eq!(upstream_headers(&asked, BodyHandling::Pass), expected);
    }

    #[test]
    fn what_has_to_be_changed_is_asked_for_so_that_it_can_be() {
        let asked = headers(&[("accept", "application/json, */*"), ("accept-encoding", "br")]);
        let protobuf = ("accept", "application/vnd.kubernetes.protobuf");
        for (handling, expected) in [
            (BodyHandling::Pass, &[("accept", "application/json, */*"), ("accept-encoding", "br")][..]),
            (BodyHandling::Follow, &[("accept", "application/json, */*")]),
            (BodyHandling::RewriteWatch(Format::Protobuf), &[protobuf]),
            (BodyHandling::RewriteWatch(Format::Json), &[("accept", "application/json")]),
            (BodyHandling::RewriteList(Format::Protobuf), &[protobuf, ("accept-encoding", "gzip")]),
        ] {
            assert_eq!(upstream_headers(&asked, handling), headers(expected), "{handling:?}");
        }
    }

    #[test]
    fn only_known_formats_and_encodings_can_be_read() {
        let watch = ("content-type", "application/vnd.kubernetes.protobuf;stream=watch");
        let json = ("content-type", "application/json");
        for (list, expected) in [
            (&[watch][..], Some((Format::Protobuf, false))),
            (&[json], Some((Format::Json, false))),
            (&[json, ("content-encoding", "identity")], Some((Format::Json, false))),
            (&[watch, ("content-encoding", "gzip")], Some((Format::Protobuf, true))),
            (&[watch, ("content-encoding", "zstd")], None),
            (&[("content-type", "application/cbor")], None),
            (&[], None),
        ] {
            let expected = expected.map(|(format, compressed)| Encoding { format, compressed });
            assert_eq!(encoding(&headers(list)), expected, "{list:?}");
        }
    }
}
