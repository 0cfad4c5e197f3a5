use std::convert::Infallible;

use isp_api::IngressSourcePreserve;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

/// An observer of an API server that never responds.
fn observer() -> Observer {
    let service = tower::service_fn(|_: http::Request<Body>| {
        std::future::pending::<Result<http::Response<Body>, Infallible>>()
    });
    Observer::new(Client::new(service, "default"), &Readiness::default())
}

fn object(version: &str, sidecars: &Value) -> Box<IngressSourcePreserve> {
    let object = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve",
        "metadata": {"name": "web", "uid": "u", "resourceVersion": version},
        "spec": {
            "ingressNodes": {"selector": {}}, "services": [{"namespace": "web", "name": "frontend"}], "sidecars": sidecars,
        },
    });
    Box::new(serde_json::from_value(object).unwrap())
}

#[tokio::test]
async fn an_object_that_asks_for_sidecars_is_followed_wherever_that_was_first_seen() {
    let mut observer = observer();
    for event in
        [watcher::Event::Init, watcher::Event::InitApply(*object("1", &json!([]))), watcher::Event::InitDone]
    {
        observer.index.take(Update::Objects(Box::new(event)));
    }
    observer.follow_sidecars();
    let follows = |observer: &Observer| observer.index.missing().contains(&"namespaces".to_owned());
    assert!(!follows(&observer));

    // The object changed between the list and our own write.
    let changed = json!([{"namespaceSelector": {"matchLabels": {"team": "shop"}}}]);
    assert_eq!(observer.take_answer(written(&object("3", &changed))), News::Facts);
    assert!(follows(&observer));
    assert_eq!(observer.take_answer(written(&object("4", &json!([])))), News::Facts);
    assert!(!follows(&observer), "and no longer");
}

#[tokio::test]
async fn all_pods_are_followed_only_while_an_object_asks_for_a_redirect() {
    let mut observer = observer();
    for event in
        [watcher::Event::Init, watcher::Event::InitApply(*object("1", &json!([]))), watcher::Event::InitDone]
    {
        observer.index.take(Update::Objects(Box::new(event)));
    }
    let follows = |observer: &Observer| observer.index.missing().contains(&"all pods".to_owned());
    let entry = |change: Value| {
        let mut entry = json!({"namespaceSelector": {"matchLabels": {"team": "shop"}}});
        entry.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        json!([entry])
    };
    let redirect = json!({"redirect": {"inbound": {"method": "REDIRECT", "port": 15006}}});
    for (version, sidecars, expected) in [
        ("2", entry(json!({})), false),
        ("3", entry(redirect), true),
        ("4", entry(json!({"interceptionMode": "TPROXY"})), false),
    ] {
        assert_eq!(observer.take_answer(written(&object(version, &sidecars))), News::Facts);
        assert_eq!(follows(&observer), expected, "{sidecars}");
    }
}

fn written(object: &IngressSourcePreserve) -> Answer {
    Answer::Written(Written::PreserveStatus, Box::new(serde_json::from_value(json!(object)).unwrap()))
}
