use serde_json::{Value, json};

use super::*;

fn ends(peer: &str, local: &str) -> Ends {
    Ends::new(peer.parse().unwrap(), local.parse().unwrap())
}

fn parsed(answer: &Answer<'_>) -> Value {
    serde_json::from_slice(&answer.line().unwrap()).unwrap()
}

#[test]
fn an_ipv4_peer_of_a_dual_stack_socket_is_reported_as_plain_ipv4() {
    let answer =
        Answer::tcp(ends("[::ffff:10.90.0.100]:5000", "[::ffff:10.244.1.2]:8081"), &Place::default())
            .line()
            .unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(
        answer,
        json!({"proto": "tcp", "peer": "10.90.0.100:5000", "peerIp": "10.90.0.100", "local": "10.244.1.2:8081"})
    );
}

#[test]
fn an_ipv6_peer_stays_as_it_is() {
    let answer = parsed(&Answer::tcp(ends("[fd00::1]:5000", "[fd00::2]:8081"), &Place::default()));
    assert_eq!(answer["peer"], "[fd00::1]:5000");
    assert_eq!(answer["peerIp"], "fd00::1");
}

#[test]
fn an_http_answer_holds_the_request_and_the_place() {
    let mut headers = HeaderMap::new();
    headers.append("host", "shop.example".parse().unwrap());
    headers.append("x-forwarded-for", "10.90.0.100".parse().unwrap());
    headers.append("x-forwarded-for", "10.244.0.1".parse().unwrap());
    let place = Place {
        pod: Some("echo-1".into()),
        namespace: Some("demo".into()),
        node: Some("work-1".into()),
        pod_ip: Some("10.244.1.2".into()),
    };
    let request = HttpRequest { method: "GET", path: "/a?b=c", headers: &headers, body_bytes: 3 };
    assert_eq!(
        parsed(&Answer::http(&request, ends("10.0.0.1:1", "10.0.0.2:2"), &place)),
        json!({
            "proto": "http", "peer": "10.0.0.1:1", "peerIp": "10.0.0.1", "local": "10.0.0.2:2",
            "method": "GET", "path": "/a?b=c", "host": "shop.example", "bodyBytes": 3,
            "headers": {"host": "shop.example", "x-forwarded-for": "10.90.0.100, 10.244.0.1"},
            "pod": "echo-1", "namespace": "demo", "node": "work-1", "podIp": "10.244.1.2",
        })
    );
}

#[test]
fn the_answer_to_the_largest_datagram_fits_into_a_datagram() {
    let answer =
        Answer::udp(&vec![0; 65_507], ends("10.0.0.1:1", "10.0.0.2:2"), &Place::default()).line().unwrap();
    assert!(answer.len() < 65_507, "{}", answer.len());
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["payloadBytes"], 65_507);
}

#[test]
fn a_payload_that_is_not_text_is_still_answered() {
    let answer = parsed(&Answer::udp(b"ok\xff", ends("10.0.0.1:1", "10.0.0.2:2"), &Place::default()));
    assert_eq!(answer["payload"], "ok\u{fffd}");
}
