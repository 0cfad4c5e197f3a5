//! Compares the narrowed text with that of a reader that has the whole document.

use hyper::body::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{Format, Narrower};
use super::*;
use crate::fixtures::narrowing;

/// Feeds the bytes in pieces of these sizes, repeatedly, and checks that the body is complete.
fn narrow(kind: BodyKind, text: &str, sizes: &[usize]) -> Result<(String, StreamSummary), WireError> {
    let mut narrower = Narrower::new(Format::Json, kind, narrowing(), true);
    let (mut rest, mut out) = (Bytes::copy_from_slice(text.as_bytes()), Vec::new());
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = (*sizes.next().unwrap()).clamp(1, rest.len());
        out.extend_from_slice(&narrower.feed(rest.split_to(size))?);
    }
    narrower.finish()?;
    Ok((String::from_utf8(out).unwrap(), narrower.summary()))
}

fn is_narrowed(service: &Value) -> bool {
    let labels = &service["metadata"]["labels"];
    labels["a"] == "1" || labels["b"] == "2"
}

fn expected(mut service: Value) -> Value {
    if is_narrowed(&service) {
        if let Some(spec) = service["spec"].as_object_mut() {
            spec.remove("externalIPs");
        }
        if let Some(balancer) = service["status"]["loadBalancer"].as_object_mut() {
            balancer.remove("ingress");
        }
    }
    service
}

/// Generates any value that an object could contain.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        r#"[ -~äß日"\\\n{}\[\],:]{0,20}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(r#"[a-z"\\{ä]{1,5}"#, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

prop_compose! {
    fn service()(
        name in "[a-z]{1,12}",
        labels in prop::option::of(prop::collection::btree_map("[abc]", "[12]", 0..3)),
        ips in prop::option::of(prop::collection::vec("[0-9a-f.:]{3,39}", 0..3)),
        ingress in prop::option::of(prop::collection::vec("[0-9a-f.:]{3,39}", 0..3)),
        more in anything(),
    ) -> Value {
        let mut service = json!({
            "metadata": {"name": name, "annotations": {"note": "{\"externalIPs\":[]}"}, "other": more},
            "spec": {"clusterIP": "10.96.0.7", "externalTrafficPolicy": "Local", "other": more},
            "status": {"conditions": more, "loadBalancer": {}},
        });
        if let Some(labels) = labels {
            service["metadata"]["labels"] = json!(labels);
        }
        if let Some(ips) = ips {
            service["spec"]["externalIPs"] = json!(ips);
        }
        if let Some(ingress) = ingress {
            service["status"]["loadBalancer"]["ingress"] =
                ingress.iter().map(|ip| json!({"ip": ip, "ipMode": "VIP"})).collect();
        }
        service
    }
}

fn list(services: &[Value], pretty: bool) -> String {
    let list = json!({
        "kind": "ServiceList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "4711", "continue": "abc"},
        "items": services,
    });
    if pretty { format!("{list:#}\n") } else { format!("{list}\n") }
}

fn event(kind: &str, object_kind: &str, mut object: Value) -> Value {
    object["kind"] = object_kind.into();
    object["apiVersion"] = "v1".into();
    json!({"type": kind, "object": object})
}

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

proptest! {
    #[test]
    fn narrowed_services_lose_their_addresses_and_nothing_else_however_the_list_is_split(
        services in prop::collection::vec(service(), 0..6),
        sizes in prop::collection::vec(1_usize..300, 1..8),
        pretty in any::<bool>(),
    ) {
        let text = list(&services, pretty);
        let (after, seen) = narrow(BodyKind::List, &text, &sizes).unwrap();
        let narrowed = services.iter().filter(|service| is_narrowed(service)).count();
        let whole: Value = serde_json::from_str(&after).unwrap();
        let wanted: Vec<Value> = services.into_iter().map(expected).collect();
        let wanted: Value = serde_json::from_str(&list(&wanted, pretty)).unwrap();
        prop_assert_eq!(whole, wanted);
        prop_assert_eq!((seen.services, seen.narrowed), (wanted_len(&after), narrowed as u64));
        if narrowed == 0 {
            prop_assert_eq!(&after, &text);
        }
        prop_assert_eq!(narrow(BodyKind::List, &text, &[1]).unwrap().0, after);
    }

    #[test]
    fn a_watch_is_narrowed_event_by_event_however_it_is_split(
        services in prop::collection::vec(service(), 0..6),
        kinds in prop::collection::vec(prop::sample::select(vec!["ADDED", "MODIFIED", "DELETED"]), 6),
        sizes in prop::collection::vec(1_usize..300, 1..8),
    ) {
        let all: Vec<Value> =
            services.iter().zip(&kinds).map(|(service, kind)| event(kind, "Service", service.clone())).collect();
        let text = all.iter().fold(String::new(), |text, event| text + &event.to_string() + "\n");
        let (after, seen) = narrow(BodyKind::Watch, &text, &sizes).unwrap();
        let wanted: Vec<Value> = services.into_iter().zip(&kinds)
            .map(|(service, kind)| event(kind, "Service", expected(service))).collect();
        prop_assert_eq!(seen.services, wanted.len() as u64);
        prop_assert_eq!(events(&after), wanted);
        prop_assert_eq!(narrow(BodyKind::Watch, &text, &[1]).unwrap().0, after);
    }

    #[test]
    fn any_text_is_read_or_refused_and_splits_do_not_matter(
        text in r#"[\[\]{}:,"\\ a1\n]{0,60}"#,
        watch in any::<bool>(),
        size in 1_usize..16,
    ) {
        let body = if watch { BodyKind::Watch } else { BodyKind::List };
        prop_assert_eq!(narrow(body, &text, &[usize::MAX]), narrow(body, &text, &[size]));
    }
}

fn wanted_len(list: &str) -> u64 {
    let list: Value = serde_json::from_str(list).unwrap();
    list["items"].as_array().map_or(0, Vec::len) as u64
}

#[test]
fn what_stays_keeps_the_bytes_that_it_came_with() {
    let before = r#"{"type":"ADDED","object":{"kind":"Service","metadata":{"labels":{"a":"1"}, "name":"x"},"spec":{"externalIPs":["192.0.2.1"],"n":1.50e3,"t":"\u00e4\/"},"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.2"}]}}}}"#;
    let after = r#"{"type":"ADDED","object":{"kind":"Service","metadata":{"labels":{"a":"1"}, "name":"x"},"spec":{"n":1.50e3,"t":"\u00e4\/"},"status":{"loadBalancer":{}}}}"#;
    assert_eq!(narrow(BodyKind::Watch, before, &[7]).unwrap().0, after);
}

#[test]
fn bookmarks_and_errors_pass_as_they_are_and_the_end_of_the_initial_events_is_seen() {
    let end = json!({"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}});
    let status = json!({"status": "Failure", "code": 410, "reason": "Expired"});
    for (event, ends) in [
        (event("BOOKMARK", "Service", end.clone()), true),
        (event("BOOKMARK", "Service", json!({"metadata": {"resourceVersion": "7"}})), false),
        // An ordinary Service with the annotation does not count.
        (event("ADDED", "Service", end), false),
        (event("ERROR", "Status", status), false),
    ] {
        let text = format!("{event}\n");
        let (after, seen) = narrow(BodyKind::Watch, &text, &[5]).unwrap();
        assert_eq!((after, seen.initial_events_end), (text, ends));
    }
}

#[test]
fn what_is_not_as_expected_breaks_the_stream() {
    let narrowed = json!({"metadata": {"labels": {"a": "1"}}});
    let in_list = |items: &str| format!(r#"{{"kind":"ServiceList","items":{items}}}"#);
    for (body, text, problem) in [
        (BodyKind::Watch, event("ADDED", "Secret", narrowed.clone()).to_string(), WireError::Kind),
        (BodyKind::Watch, event("ERROR", "Service", narrowed.clone()).to_string(), WireError::Kind),
        (BodyKind::Watch, event("RENAMED", "Service", narrowed.clone()).to_string(), WireError::Event),
        (BodyKind::Watch, json!({"type": "ADDED"}).to_string(), WireError::Event),
        (BodyKind::Watch, "[]".to_owned(), WireError::Syntax),
        (BodyKind::Watch, r#"{"type":"ADDED""#.to_owned(), WireError::Truncated),
        (BodyKind::Watch, r#"{"type":"ADDED"]"#.to_owned(), WireError::Syntax),
        // Readers would disagree on which member counts.
        (
            BodyKind::Watch,
            r#"{"type":"ADDED","object":{"kind":"Service","metadata":{},"metadata":{}}}"#.to_owned(),
            WireError::Syntax,
        ),
        (BodyKind::List, r#"{"kind":"Table","rows":[]}"#.to_owned(), WireError::Kind),
        (BodyKind::List, r#"{"rows":[]}"#.to_owned(), WireError::Syntax),
        (BodyKind::List, in_list(r#"[{"metadata":{}}"#), WireError::Syntax),
        (BodyKind::List, in_list("[1]"), WireError::Syntax),
        (BodyKind::List, in_list(r#"{"a":1}"#), WireError::Syntax),
        (BodyKind::List, in_list("[{}]}"), WireError::Syntax),
        (BodyKind::List, r#"{"kind":"ServiceList","items":[{}"#.to_owned(), WireError::Truncated),
        (BodyKind::List, String::new(), WireError::Truncated),
    ] {
        assert_eq!(narrow(body, &text, &[1]), Err(problem), "{text}");
    }
    assert!(narrow(BodyKind::List, &in_list("null"), &[1]).is_ok());
    assert!(narrow(BodyKind::List, &in_list("[ ]"), &[1]).is_ok());
}

#[test]
fn an_object_that_is_too_large_ends_the_stream_before_it_is_held() {
    let large = |size: usize| {
        let note = "a".repeat(size);
        event("ADDED", "Service", json!({"metadata": {"labels": {"a": "1"}, "annotations": {"n": note}}}))
    };
    let fits = large(LARGEST_OBJECT - 1000).to_string();
    assert_eq!(narrow(BodyKind::Watch, &fits, &[16_384]).unwrap().1.narrowed, 1);
    assert_eq!(narrow(BodyKind::Watch, &large(LARGEST_OBJECT).to_string(), &[16_384]), Err(WireError::Large));
    let endless = vec![b'['; LARGEST_OBJECT + 2];
    let endless = format!(r#"{{"metadata":{}"#, String::from_utf8(endless).unwrap());
    assert_eq!(narrow(BodyKind::List, &endless, &[16_384]), Err(WireError::Large));
}

#[test]
fn a_stream_that_is_only_looked_at_is_not_held_back() {
    let service = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"externalIPs": ["192.0.2.1"]}});
    let text = event("ADDED", "Service", service).to_string();
    let mut narrower = Narrower::new(Format::Json, BodyKind::Watch, narrowing(), false);
    let (first, second) = text.split_at(20);
    for piece in [first, second] {
        let piece = Bytes::copy_from_slice(piece.as_bytes());
        assert_eq!(narrower.feed(piece.clone()), Ok(piece));
    }
    assert_eq!(narrower.summary().narrowed, 1);
}
