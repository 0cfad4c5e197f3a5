//! Which headers pass, in either direction. Only those that are known to be needed do: nothing that would let a
//! caller speak for someone else goes on, and nothing about a connection crosses to another one.

use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
    HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};

use crate::filter::wire::Format;

const ONWARD: [HeaderName; 5] = [ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, USER_AGENT];
const OF_A_CONNECTION: [HeaderName; 6] = [
    CONNECTION,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("trailer"),
];
const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// What the agent has to do with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    /// Pass it on in any encoding.
    Pass,
    /// Follow how far kube-proxy has come, in any format.
    Follow,
    /// Change a list, in this format.
    RewriteList(Format),
    /// Change a watch, in this format.
    RewriteWatch(Format),
}

/// How an answer that is read on its way is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) format: Format,
    pub(super) compressed: bool,
}

/// The headers of the request to the API server.
pub(super) fn onward(asked: &HeaderMap, treatment: Treatment) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in ONWARD {
        for value in asked.get_all(&name) {
            headers.append(name.clone(), value.clone());
        }
    }
    match treatment {
        Treatment::Pass => {}
        // Events are compressed one by one, which gains little and costs each of them time.
        Treatment::Follow => drop(headers.remove(ACCEPT_ENCODING)),
        Treatment::RewriteWatch(format) => {
            headers.remove(ACCEPT_ENCODING);
            headers.insert(ACCEPT, HeaderValue::from_static(format.media_type()));
        }
        // A list shrinks to a tenth; the way to the API server may be long, the one to kube-proxy is not.
        Treatment::RewriteList(format) => {
            headers.insert(ACCEPT_ENCODING, GZIP);
            headers.insert(ACCEPT, HeaderValue::from_static(format.media_type()));
        }
    }
    headers
}

/// Leaves only what is the answer's own.
pub(super) fn back(headers: &mut HeaderMap) {
    for name in OF_A_CONNECTION {
        headers.remove(name);
    }
}

/// Leaves nothing that is no longer true of an answer that is unpacked and changed on its way.
pub(super) fn changed(headers: &mut HeaderMap) {
    headers.remove(CONTENT_ENCODING);
    headers.remove(CONTENT_LENGTH);
}

/// How the answer is written, if it can be read on its way.
pub(super) fn written(headers: &HeaderMap) -> Option<Written> {
    let compressed = match headers.get(CONTENT_ENCODING) {
        None => false,
        Some(encoding) if encoding == "identity" => false,
        Some(encoding) if encoding == GZIP => true,
        Some(_) => return None,
    };
    let kind = headers.get(CONTENT_TYPE)?.to_str().ok()?.split(';').next()?.trim();
    let format = [Format::Protobuf, Format::Json].into_iter().find(|format| format.media_type() == kind)?;
    Some(Written { format, compressed })
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
        assert_eq!(onward(&asked, Treatment::Pass), expected);
    }

    #[test]
    fn what_has_to_be_changed_is_asked_for_so_that_it_can_be() {
        let asked = headers(&[("accept", "application/json, */*"), ("accept-encoding", "br")]);
        let protobuf = ("accept", "application/vnd.kubernetes.protobuf");
        for (treatment, expected) in [
            (Treatment::Pass, &[("accept", "application/json, */*"), ("accept-encoding", "br")][..]),
            (Treatment::Follow, &[("accept", "application/json, */*")]),
            (Treatment::RewriteWatch(Format::Protobuf), &[protobuf]),
            (Treatment::RewriteWatch(Format::Json), &[("accept", "application/json")]),
            (Treatment::RewriteList(Format::Protobuf), &[protobuf, ("accept-encoding", "gzip")]),
        ] {
            assert_eq!(onward(&asked, treatment), headers(expected), "{treatment:?}");
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
            let expected = expected.map(|(format, compressed)| Written { format, compressed });
            assert_eq!(written(&headers(list)), expected, "{list:?}");
        }
    }
}
