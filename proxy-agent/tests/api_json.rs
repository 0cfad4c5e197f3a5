//! A kube-proxy that is configured for JSON sees no more than one that uses protobuf: lists and
//! watches of a real API server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use isp_api::node::IngressSourceNodeStatus;
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_lab::ControlPlane;
use isp_testkit::agent::{self, Agent, NODE};
use isp_testkit::{preserve, until};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

/// The header of a kube-proxy with `clientConnection.contentType: application/json`.
const ACCEPT: &str = "-HAccept: application/json, */*";
const FROM_START: &str = "/api/v1/services?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
const ADDRESS: &str = "192.0.2.50";

/// Creates Services with external addresses. One is preserved, and large enough that the API server
/// compresses the list.
async fn fill(cluster: &ControlPlane) {
    let services: Api<Service> = Api::namespaced(cluster.client().unwrap(), "default");
    for (name, label, note) in [("ordinary", "none", 10), ("narrowed", "narrowed", 200_000)] {
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": name,
                "labels": {"sourcepreserve.io/preserve": label},
                "annotations": {"note": "\"{ä}\\".repeat(note / 6)},
            },
            "spec": {"type": "LoadBalancer", "externalIPs": [ADDRESS], "ports": [{"port": 80}]},
        });
        let mut made =
            services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
        made.status =
            serde_json::from_value(json!({"loadBalancer": {"ingress": [{"ip": ADDRESS}]}})).unwrap();
        services.replace_status(name, &PostParams::default(), &made).await.unwrap();
    }
}

async fn preserve(cluster: &ControlPlane, name: &str, elsewhere: &str) {
    let objects: Api<IngressSourcePreserve> = Api::all(cluster.client().unwrap());
    objects.create(&PostParams::default(), &preserve::object(name, elsewhere)).await.unwrap();
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn without_addresses(mut service: Value) -> Value {
    service["spec"].as_object_mut().unwrap().remove("externalIPs").unwrap();
    service["status"]["loadBalancer"].as_object_mut().unwrap().remove("ingress").unwrap();
    service
}

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    list["items"].as_array().unwrap().iter().find(|item| item["metadata"]["name"] == name).unwrap()
}

/// Fails with the report of the node, unless it acknowledges every object.
async fn acknowledged(cluster: &ControlPlane) -> Result<(), Option<IngressSourceNodeStatus>> {
    let nodes: Api<IngressSourceNode> = Api::all(cluster.client().unwrap());
    let status = nodes.get_opt(NODE).await.unwrap().and_then(|node| node.status);
    let all = status.as_ref().is_some_and(|status| {
        status.active && !status.views.is_empty() && status.views.iter().all(|view| view.received)
    });
    if all { Ok(()) } else { Err(status) }
}

#[tokio::test]
async fn addresses_are_hidden_in_lists_and_watches_in_json() {
    let cluster = ControlPlane::shared().await.unwrap();
    agent::install(cluster).await;
    fill(cluster).await;
    preserve(cluster, "narrowed", "ClusterOnly").await;
    let agent = Agent::of(env!("CARGO_BIN_EXE_proxy-agent")).start(cluster).await;
    agent.wait_for_services();

    // Lists: everything but the addresses is as the API server has it.
    let direct = cluster.kubectl(&["get", "--raw", "/api/v1/services"]).await.unwrap();
    let direct = parse(&direct.stdout);
    assert_eq!(named(&direct, "narrowed")["spec"]["externalIPs"], json!([ADDRESS]));
    for flags in [&[][..], &["--compressed"], &["--http1.1", "--compressed"]] {
        let (code, body) = agent.ask(&[flags, &[ACCEPT, "/api/v1/services"]].concat());
        assert_eq!(code, 200, "{body}");
        let through = parse(&body);
        assert_eq!(*named(&through, "ordinary"), *named(&direct, "ordinary"));
        assert_eq!(*named(&through, "narrowed"), without_addresses(named(&direct, "narrowed").clone()));
    }
    let (code, page) = agent.ask(&[ACCEPT, "/api/v1/services?limit=1"]);
    assert_eq!((code, parse(&page)["items"].as_array().unwrap().len()), (200, 1));
    // A Table would have the addresses in its cells, so the agent does not request one.
    let (_, body) =
        agent.ask(&["-HAccept: application/json;as=Table;v=v1;g=meta.k8s.io", "/api/v1/services"]);
    assert_eq!(parse(&body)["kind"], "ServiceList");
    assert_eq!(agent.ask(&["-HAccept: application/cbor", "/api/v1/services"]).0, 406);

    // A watch from the start, with its closing bookmark, and then a change.
    let watch = agent.follow(&[ACCEPT, "--compressed", FROM_START]);
    let mut initial = Vec::new();
    loop {
        let event = parse(&watch.next().unwrap());
        if event["type"] == "BOOKMARK" {
            assert_eq!(event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
            break;
        }
        assert_eq!(event["type"], "ADDED");
        initial.push(event["object"].clone());
    }
    let initial = json!({"items": initial});
    assert_eq!(named(&initial, "ordinary")["spec"]["externalIPs"], json!([ADDRESS]));
    let narrowed = named(&initial, "narrowed");
    assert!(!narrowed.to_string().contains(ADDRESS), "{narrowed}");
    assert_eq!(narrowed["metadata"]["annotations"], named(&direct, "narrowed")["metadata"]["annotations"]);

    let services: Api<Service> = Api::namespaced(cluster.client().unwrap(), "default");
    for name in ["narrowed", "ordinary"] {
        let patch = json!({"metadata": {"labels": {"changed": "yes"}}});
        services.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        // On a slow machine a bookmark comes in between, as one does every minute.
        let mut events = std::iter::repeat_with(|| parse(&watch.next().unwrap()));
        let event = events.find(|event| event["type"] != "BOOKMARK").unwrap();
        let object = &event["object"];
        assert_eq!((&event["type"], &object["metadata"]["name"]), (&json!("MODIFIED"), &json!(name)));
        assert_eq!(object["metadata"]["labels"]["changed"], "yes");
        assert_eq!(object.to_string().contains(ADDRESS), name == "ordinary");
    }

    // The watch counts as a read, so the agent acknowledges the view.
    until("a kube-proxy that speaks JSON is acknowledged", async || acknowledged(cluster).await).await;
    let metrics = agent.metrics();
    let delays = metrics.iter().find_map(|line| line.strip_prefix("isp_agent_watch_delay_seconds_count "));
    assert!(delays.is_some_and(|count| count.parse::<u64>().unwrap() >= 3), "{metrics:?}");

    // Without addresses to hide, the agent forwards the watch unchanged and still follows it.
    let objects: Api<IngressSourcePreserve> = Api::all(cluster.client().unwrap());
    objects.delete("narrowed", &DeleteParams::default()).await.unwrap();
    preserve(cluster, "hidden", "Hidden").await;
    let mut rest = std::iter::from_fn(|| watch.next()).map(|event| parse(&event));
    assert_eq!(rest.find(|event| event["type"] != "BOOKMARK"), None, "the view changed, so the watch ends");
    let _watch = until("a watch that is only followed is acknowledged", async || {
        let watch = agent.follow(&[ACCEPT, "--compressed", FROM_START]);
        let first = watch.next();
        if !first.as_ref().is_some_and(|event| parse(event)["type"] == "ADDED") {
            return Err(format!("the first event is {first:?}"));
        }
        acknowledged(cluster).await.map(|()| watch).map_err(|status| format!("{status:?}"))
    })
    .await;
}
