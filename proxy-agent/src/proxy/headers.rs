//! Which headers pass, in either direction. Only those that are known to be needed do: nothing that would let a
//! caller speak for someone else goes on, and nothing about a connection crosses to another one.

use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};

const ONWARD: [HeaderName; 5] = [ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, USER_AGENT];
const OF_A_CONNECTION: [HeaderName; 6] = [
    CONNECTION,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("trailer"),
];
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// What the agent has to do with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    /// Pass it on in any encoding.
    Pass,
    /// Follow how far kube-proxy has come, so it must not be compressed.
    Follow,
    /// Change it, so it must be plain protobuf.
    Rewrite,
}

/// The headers of the request to the API server.
pub(super) fn onward(asked: &HeaderMap, treatment: Treatment) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in ONWARD {
        for value in asked.get_all(&name) {
            headers.append(name.clone(), value.clone());
        }
    }
    if treatment == Treatment::Rewrite {
        headers.insert(ACCEPT, HeaderValue::from_static(PROTOBUF));
    }
    if treatment != Treatment::Pass {
        headers.remove(ACCEPT_ENCODING);
    }
    headers
}

/// Leaves only what is the answer's own.
pub(super) fn back(headers: &mut HeaderMap) {
    for name in OF_A_CONNECTION {
        headers.remove(name);
    }
}

/// Whether the answer is protobuf as it is, so that it can be read on its way.
pub(super) fn is_protobuf(headers: &HeaderMap) -> bool {
    let plain = headers.get(http::header::CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity");
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    plain && kind.split(';').next().is_some_and(|kind| kind.trim() == PROTOBUF)
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
    fn what_has_to_be_changed_is_asked_for_in_plain_protobuf() {
        let asked = headers(&[("accept", "application/json"), ("accept-encoding", "gzip")]);
        assert_eq!(onward(&asked, Treatment::Rewrite), headers(&[("accept", PROTOBUF)]));
        assert_eq!(onward(&asked, Treatment::Follow), headers(&[("accept", "application/json")]));
        assert_eq!(onward(&asked, Treatment::Pass), asked);
    }

    #[test]
    fn only_plain_protobuf_can_be_read() {
        assert!(is_protobuf(&headers(&[(
            "content-type",
            "application/vnd.kubernetes.protobuf;stream=watch"
        )])));
        assert!(!is_protobuf(&headers(&[("content-type", PROTOBUF), ("content-encoding", "gzip")])));
        assert!(!is_protobuf(&headers(&[("content-type", "application/json")])));
        assert!(!is_protobuf(&headers(&[])));
    }
}
