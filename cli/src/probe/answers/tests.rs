use super::*;

fn seen(source: &str, node: &str) -> Seen {
    Seen { source: source.parse().unwrap(), whose: Whose::Unknown, target_node: Some(node.to_owned()) }
}

#[test]
fn answers_silence_and_reachability_are_told_apart() {
    let log = r#"
{"question":0,"error":"refused","own":"10.244.2.5"}
{"question":0,"peerIp":"10.90.0.12","node":"edge-1","own":"10.244.2.5"}
{"question":0,"peerIp":"10.90.0.12","node":"edge-1","own":"10.244.2.5"}
{"question":0,"peerIp":"10.244.3.1","node":"edge-2","own":"10.244.2.5"}
{"question":1,"error":"timed out","own":"10.244.2.5"}
{"question":2,"error":"status 404","status":404}
{"question":3,"own":"10.244.2.5"}
no JSON
"#;
    let own = Some("10.244.2.5".parse().unwrap());
    let all = read(log, 5);
    let both = BTreeSet::from([seen("10.90.0.12", "edge-1"), seen("10.244.3.1", "edge-2")]);
    assert_eq!(all[0], Answer { own, observed: Observed::Seen(both) });
    assert_eq!(all[1], Answer { own, observed: Observed::Silent("timed out".to_owned()) });
    assert_eq!(all[2], Answer { own: None, observed: Observed::Reached });
    assert_eq!(all[3], Answer { own, observed: Observed::Reached });
    let nothing = Observed::Silent("the client printed nothing".to_owned());
    assert_eq!(all[4], Answer { own: None, observed: nothing });
}
