use std::collections::BTreeMap;

use isp_api::view::view;
use serde_json::json;

use super::*;
use crate::fixtures::preserve;

const ACCEPT: &str = "application/vnd.kubernetes.protobuf,application/json";

fn narrowing(objects: &[(&str, &str)]) -> Narrowing {
    let object = |(name, elsewhere): &(&str, &str)| preserve(name, json!({"elsewhere": elsewhere}));
    let objects: Vec<_> = objects.iter().map(object).collect();
    view(isp_api::validate::NodeIdentity { name: "n", labels: &BTreeMap::new() }, &objects).narrowing
}

fn ask(method: &str, path_and_query: &str, narrowing: &Narrowing) -> Result<Forward, Refusal> {
    let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
    let method = method.parse().unwrap();
    decide(RequestHead { method: &method, path, query, accept: ACCEPT, has_body: false }, "work-1", narrowing)
}

fn services(query: &str, narrowing: &Narrowing) -> ServicesRequest {
    match ask("GET", &format!("/api/v1/services?{query}"), narrowing) {
        Ok(Forward::Services(services)) => services,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_kube_proxy_asks_is_forwarded() {
    let nothing = narrowing(&[]);
    for (method, path) in [
        (
            "GET",
            "/apis/discovery.k8s.io/v1/endpointslices?labelSelector=%21service.kubernetes.io%2Fheadless&watch=true",
        ),
        ("GET", "/apis/networking.k8s.io/v1/servicecidrs?limit=500&resourceVersion=0"),
        ("GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dwork-1&watch=true"),
        ("GET", "/api/v1/nodes/work-1"),
        ("POST", "/apis/events.k8s.io/v1/namespaces/default/events"),
        ("PATCH", "/apis/events.k8s.io/v1/namespaces/default/events/work-1.18a"),
        ("GET", "/version"),
        ("GET", "/api"),
        ("GET", "/apis/discovery.k8s.io/v1"),
    ] {
        let watch = path.contains("watch=true");
        assert_eq!(ask(method, path, &nothing), Ok(Forward::Unchanged { watch }), "{method} {path}");
    }
}

#[test]
fn everything_else_is_refused() {
    let nothing = narrowing(&[]);
    for (method, path) in [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/namespaces/kube-system/secrets/x"),
        ("GET", "/api/v1/pods"),
        ("GET", "/api/v1/nodes"),
        ("GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dother"),
        ("GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dwork-1&fieldSelector=metadata.name%3Dother"),
        ("GET", "/api/v1/nodes/other"),
        ("GET", "/api/v1/nodes/work-1/proxy/metrics"),
        ("GET", "/api/v1/namespaces/default/services"),
        ("GET", "/api/v1/services/"),
        ("GET", "//api/v1/services"),
        ("GET", "/api/v1/service%73"),
        ("GET", "/api/v1/../v1/services"),
        ("POST", "/api/v1/namespaces/default/services"),
        ("POST", "/api/v1/services"),
        ("DELETE", "/apis/events.k8s.io/v1/namespaces/default/events/x"),
        ("DELETE", "/apis/events.k8s.io/v1/namespaces/default/events"),
        ("GET", "/apis/events.k8s.io/v1/namespaces/default/events"),
        ("POST", "/apis/events.k8s.io/v1/namespaces/../events"),
        ("POST", "/apis/events.k8s.io/v1/namespaces/default/events/x/status"),
        ("GET", "/metrics"),
        ("GET", "/"),
    ] {
        let refused = ask(method, path, &nothing);
        assert!(refused.is_err(), "{method} {path}: {refused:?}");
    }
    let body = RequestHead { method: &Method::GET, path: "/version", query: "", accept: "", has_body: true };
    assert_eq!(decide(body, "work-1", &nothing), Err(Refusal::Body));
}

#[test]
fn hidden_services_are_left_out_by_the_api_server_itself() {
    let query = "labelSelector=%21service.kubernetes.io%2Fservice-proxy-name&limit=500&resourceVersion=0";
    let unchanged = services(query, &narrowing(&[]));
    assert_eq!(
        unchanged.query,
        "limit=500&resourceVersion=0&labelSelector=%21service.kubernetes.io%2Fservice-proxy-name"
    );
    let hidden =
        services(query, &narrowing(&[("one", "Hidden"), ("two", "Hidden"), ("three", "ClusterOnly")]));
    assert_eq!(
        hidden.query,
        "limit=500&resourceVersion=0&labelSelector=%21service.kubernetes.io%2Fservice-proxy-name%2C\
         sourcepreserve.io%2Fpreserve+notin+%28one%2Ctwo%29"
    );
    assert_eq!((hidden.rewrite, unchanged.rewrite), (Some(Format::Protobuf), None));
    assert_eq!(services("", &narrowing(&[("one", "Hidden")])).rewrite, None);
}

#[test]
fn a_resumed_watch_is_told_from_one_that_starts_anew() {
    let nothing = narrowing(&[]);
    for (query, read) in [
        ("limit=500&resourceVersion=0", ServiceRead::List),
        ("watch=false&resourceVersion=12", ServiceRead::List),
        ("limit=500&continue=abc", ServiceRead::NextPage),
        ("watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", ServiceRead::WatchFromStart),
        ("watch=1&resourceVersion=0", ServiceRead::WatchFromStart),
        ("watch=true", ServiceRead::WatchFromStart),
        // As the API server parses it: every value but two is true.
        ("watch", ServiceRead::WatchFromStart),
        ("watch=yes&resourceVersion=12", ServiceRead::WatchFromVersion),
        ("watch=False&resourceVersion=12", ServiceRead::List),
        ("watch=0", ServiceRead::List),
        ("watch=true&resourceVersion=12&sendInitialEvents=0", ServiceRead::WatchFromVersion),
        ("watch=true&resourceVersion=12&allowWatchBookmarks=true", ServiceRead::WatchFromVersion),
    ] {
        assert_eq!(services(query, &nothing).read, read, "{query}");
    }
}

#[test]
fn addresses_are_hidden_in_a_format_that_the_caller_takes_and_else_nothing_is_shown() {
    let clusters = narrowing(&[("one", "ClusterOnly")]);
    let rewrite = |accept: &str, narrowing: &Narrowing| {
        let asked = RequestHead { method: &Method::GET, path: SERVICES, query: "", accept, has_body: false };
        match decide(asked, "work-1", narrowing) {
            Ok(Forward::Services(services)) => Ok(services.rewrite),
            Ok(other) => panic!("{other:?}"),
            Err(refusal) => Err(refusal),
        }
    };
    for (accept, format) in [
        ("application/vnd.kubernetes.protobuf, */*", Format::Protobuf),
        ("application/json,application/vnd.kubernetes.protobuf;stream=watch", Format::Protobuf),
        ("application/json, */*", Format::Json),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", Format::Json),
        ("*/*", Format::Json),
        ("", Format::Json),
    ] {
        assert_eq!(rewrite(accept, &clusters), Ok(Some(format)), "{accept}");
    }
    for accept in ["application/cbor", "text/html", "application/vnd.kubernetes.protobufs"] {
        let refusal = Refusal::Encoding { accepted: accept.to_owned() };
        assert_eq!(rewrite(accept, &clusters), Err(refusal));
        assert_eq!(rewrite(accept, &narrowing(&[("one", "Hidden")])), Ok(None));
    }
}

#[test]
fn a_parameter_that_is_there_twice_is_refused() {
    let twice = ask("GET", "/api/v1/services?labelSelector=a&labelSelector=b", &narrowing(&[]));
    assert_eq!(twice, Err(Refusal::Twice("labelSelector")));
}
