//! `survey`: several destinations at once, with and without an answer.

use serde_json::Value;

use crate::echo::{Server, echo};

fn survey(arguments: &[&str]) -> Vec<Value> {
    let output = echo().arg("survey").args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_destination_is_asked_until_it_has_answered_often_enough() {
    let server = Server::start();
    let destinations = [
        format!("tcp://127.0.0.1:{}", server.tcp),
        format!("udp://[::1]:{}", server.udp),
        format!("http://127.0.0.1:{}/path", server.http),
        format!("http://127.0.0.1:{}/?delay=no", server.http),
        format!("connect://127.0.0.1:{}", server.tcp),
    ];
    let arguments: Vec<&str> = destinations.iter().map(String::as_str).collect();
    let lines = survey(&[&arguments[..], &["--answers", "3", "--interval", "10"]].concat());
    let of = |question: u64| -> Vec<&Value> {
        lines.iter().filter(|line| line["question"].as_u64() == Some(question)).collect()
    };
    for (question, own) in [(0, "127.0.0.1"), (1, "::1"), (2, "127.0.0.1")] {
        let lines = of(question);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines.iter().all(|line| line["peerIp"] == own && line["own"] == own), "{lines:?}");
    }
    assert!(of(3).iter().all(|line| line["status"] == 400), "{lines:?}");
    assert!(of(4).iter().all(|line| line["error"].is_null() && line["peerIp"].is_null()), "{lines:?}");
    assert_eq!((of(3).len(), of(4).len()), (3, 3));
}

#[test]
fn silence_is_believed_after_some_time() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let lines = survey(&[&format!("tcp://{closed}"), "--patience", "200", "--interval", "20"]);
    assert!(lines.len() > 2, "{lines:?}");
    assert!(lines.iter().all(|line| line["error"] == "refused"), "{lines:?}");
}
