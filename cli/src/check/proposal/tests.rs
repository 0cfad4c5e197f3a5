#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use isp_api::IngressSourcePreserve;
use isp_api::validate::conflicts;
use serde_json::json;

use super::*;
use crate::check::fit::fit;
use crate::doctor::tests::world::World;
use crate::plan::file;

fn propose(world: &World) -> Option<Proposal> {
    let (cluster, _) = world.read();
    super::propose(&cluster, None, &fit(&cluster))
}

/// The project's own reader accepts the text, and the object contradicts no other.
fn accepted(world: &World, proposal: &Proposal) -> IngressSourcePreserve {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("isp.yaml");
    std::fs::write(&path, proposal.text(&path)).unwrap();
    let [object] = file::read(&path).unwrap().try_into().unwrap();
    let (cluster, _) = world.read();
    let all: Vec<&IngressSourcePreserve> = cluster.objects.iter().chain([&object]).collect();
    let names: BTreeSet<_> = all.iter().map(|object| object.metadata.name.clone()).collect();
    assert_eq!(names.len(), all.len(), "the name is taken");
    let all: Vec<IngressSourcePreserve> = all.into_iter().cloned().collect();
    assert!(conflicts(&all, &cluster.service_identities(), &[]).is_empty());
    assert!(object.spec.ingress_nodes.contains(&BTreeMap::new()).is_ok());
    object
}

#[test]
fn an_existing_label_is_used_and_services_without_an_endpoint_there_are_left_out() {
    let world = World::of("untouched");
    let proposal = propose(&world).unwrap();
    assert_eq!(proposal.commands, Vec::<String>::new());
    assert_eq!(
        proposal.text(Path::new("isp.yaml")),
        "\
# Proposed by `kubectl isp check`. Review it before you apply it:
#   kubectl isp plan -f isp.yaml
#   kubectl apply -f isp.yaml
# One ingress node is a single point of failure; two or more are better.
# Left out, because no ingress node has a ready endpoint of it: plain/echo
apiVersion: sourcepreserve.io/v1alpha1
kind: IngressSourcePreserve
metadata:
  name: istio-ingressgateway
spec:
  ingressNodes:
    selector:
      matchExpressions:
      - key: node-role.kubernetes.io/ingress
        operator: Exists
  mode: Filter
  services:
  - name: istio-ingressgateway
    namespace: istio-system
"
    );
    let object = accepted(&world, &proposal);
    assert_eq!(object.spec.services.len(), 1);
    assert_eq!(propose(&world), Some(proposal), "the same facts give the same text");
}

#[test]
fn without_a_label_the_nodes_with_endpoints_are_labelled() {
    let mut world = World::of("untouched");
    let labels = world.the("Node", "edge-1")["metadata"]["labels"].as_object_mut().unwrap();
    labels.remove("node-role.kubernetes.io/ingress").unwrap();
    let proposal = propose(&world).unwrap();
    assert_eq!(proposal.commands, ["kubectl label node edge-1 work-1 node-role.kubernetes.io/ingress="]);
    let object = accepted(&world, &proposal);
    assert_eq!((object.metadata.name.as_deref(), object.spec.services.len()), (Some("ingress"), 2));
}

#[test]
fn a_label_that_is_in_use_is_not_put_on_more_nodes() {
    let world = World::of("healthy");
    let proposal = propose(&world).unwrap();
    assert_eq!(proposal.commands, ["kubectl label node work-1 node-role.kubernetes.io/echo-ingress="]);
    let object = accepted(&world, &proposal);
    assert_eq!(object.metadata.name.as_deref(), Some("echo"));
}

#[test]
fn the_mode_is_the_one_that_fits() {
    let mut world = World::of("untouched");
    world.remove("DaemonSet", "kube-proxy");
    world.add(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "kube-proxy-work-1", "namespace": "kube-system",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "work-1", "uid": "1"}],
        },
        "spec": {"nodeName": "work-1", "containers": [{"name": "kube-proxy", "image": "kube-proxy:1"}]},
    }));
    let proposal = propose(&world).unwrap();
    assert_eq!(accepted(&world, &proposal).spec.mode, Mode::Beside);
}

#[test]
fn sidecars_are_part_of_it_only_where_an_application_is_exposed() {
    let mut world = World::of("untouched");
    assert!(propose(&world).unwrap().object["spec"].get("sidecars").is_none());
    let service = world.the("Service", "cart");
    service["spec"]["type"] = json!("NodePort");
    let cart = world.the("Pod", "cart-")["spec"]["nodeName"].as_str().unwrap().to_owned();
    world.the("Node", &cart)["metadata"]["labels"]["node-role.kubernetes.io/ingress"] = json!("");
    let proposal = propose(&world).unwrap();
    let object = accepted(&world, &proposal);
    assert_eq!(
        proposal.object["spec"]["sidecars"],
        json!([{
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}},
            "podSelector": {"matchLabels": {"app": "cart"}},
            "interceptionMode": "TPROXY",
        }])
    );
    assert_eq!(object.spec.sidecars.len(), 1);
}

#[test]
fn nothing_is_proposed_where_nothing_would_help() {
    let mut proxied = World::of("untouched");
    for name in ["istio-ingressgateway", "echo"] {
        let service = proxied.the("Service", name);
        service["spec"]["type"] = json!("LoadBalancer");
        service["spec"]["externalTrafficPolicy"] = json!("Local");
        service["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.10", "ipMode": "Proxy"}]}});
    }
    assert_eq!(propose(&proxied), None);
    let mut without_endpoints = World::of("untouched");
    for name in ["istio-ingressgateway", "echo"] {
        without_endpoints.the("EndpointSlice", name)["endpoints"] = json!([]);
    }
    assert_eq!(propose(&without_endpoints), None);
    let mut refused = World::of("untouched");
    refused.version = "v1.30.0";
    assert_eq!(propose(&refused), None);
}

#[test]
fn an_object_names_no_more_services_than_its_schema_admits_and_no_name_that_is_none() {
    let mut world = World::of("untouched");
    let slice = world.the("EndpointSlice", "istio-ingressgateway").clone();
    for number in 0..200 {
        let name = format!("many-{number:03}");
        world.add(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "istio-system"},
            "spec": {"type": "NodePort", "externalTrafficPolicy": "Cluster", "ports": [{"port": 80}]},
        }));
        let mut slice = slice.clone();
        slice["metadata"]["name"] = json!(name);
        slice["metadata"]["labels"]["kubernetes.io/service-name"] = json!(name);
        world.add(slice);
    }
    world.add(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "a\nb: c", "namespace": "istio-system"},
        "spec": {"type": "NodePort", "externalTrafficPolicy": "Cluster", "ports": [{"port": 80}]},
    }));
    let proposal = propose(&world).unwrap();
    assert_eq!(accepted(&world, &proposal).spec.services.len(), MAX_SERVICES);
    assert!(proposal.notes.iter().any(|note| note.contains("at most 64 Services")), "{:?}", proposal.notes);
}
