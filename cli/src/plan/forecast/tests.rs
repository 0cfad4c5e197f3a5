#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use isp_plan::cluster::{Node, Pod, Service};
use isp_plan::ownership::Owner;
use isp_plan::{Key, observe};
use serde_json::{Value, json};

use super::super::merge::merge;
use super::*;

const NOW: &str = "2026-01-01T00:00:00Z";

/// An ingress node, so many others, kubeadm's kube-proxy, and a Service with an endpoint on the ingress node.
fn cluster(others: usize) -> Cluster {
    let mut cluster = Cluster::default();
    let ready = |labels: &[(&str, &str)]| Node {
        ready: true,
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..Node::default()
    };
    cluster.nodes.insert("edge-1".to_owned(), ready(&[("ingress", "")]));
    for number in 1..=others {
        cluster.nodes.insert(format!("work-{number:02}"), ready(&[]));
    }
    let key = Key::new("web", "frontend");
    let slice = [("edge-1".to_owned(), 1)].into();
    cluster.endpoints.insert(key.clone(), [("frontend-1".to_owned(), slice)].into());
    let creator = Owner { manager: "kubectl-create".to_owned(), field: true, ..Owner::default() };
    cluster.services.insert(
        key,
        Service {
            exposed: true,
            policy: Some(TrafficPolicy::Cluster),
            owners: vec![creator],
            ..Service::default()
        },
    );
    let kube_proxy = json!({
        "metadata": {"name": "kube-proxy", "namespace": "kube-system"},
        "spec": {
            "selector": {},
            "template": {"spec": {
                "containers": [{
                    "name": "kube-proxy",
                    "command": ["kube-proxy", "--kubeconfig=/var/lib/kube-proxy/kubeconfig"],
                    "volumeMounts": [{"name": "config", "mountPath": "/var/lib/kube-proxy"}],
                }],
                "volumes": [{"name": "config", "configMap": {"name": "kube-proxy"}}],
            }},
        },
    });
    let set = observe::daemon_set(&serde_json::from_value(kube_proxy).unwrap()).unwrap();
    cluster.daemon_sets.insert(Key::new("kube-system", "kube-proxy"), set);
    cluster
}

fn object(name: &str, more: Value) -> IngressSourcePreserve {
    let mut spec = json!({
        "ingressNodes": {"selector": {"matchLabels": {"ingress": ""}}},
        "services": [{"namespace": "web", "name": "frontend"}],
        "rollout": {"maxUnavailable": "50%"},
    });
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    serde_json::from_value(json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve",
        "metadata": {"name": name}, "spec": spec,
    }))
    .unwrap()
}

fn settings() -> Settings {
    Settings {
        agent_image: "agent:1".to_owned(),
        agent_pull_secrets: Vec::new(),
        namespace: "sourcepreserve-system".to_owned(),
        cleanup: false,
    }
}

/// The forecast for the cluster when these objects are applied.
fn applied(mut cluster: Cluster, wanted: Vec<IngressSourcePreserve>) -> Forecast {
    let now = NOW.parse().unwrap();
    let before = cluster.objects.clone();
    let (objects, changes) = merge(before.clone(), wanted, now);
    cluster.objects = objects;
    forecast(cluster, &before, settings(), now, &changes)
}

/// The cluster after the operator has done everything.
fn settled(mut cluster: Cluster, wanted: Vec<IngressSourcePreserve>) -> Cluster {
    let now = NOW.parse().unwrap();
    cluster.objects = merge(cluster.objects, wanted, now).0;
    let mut simulation = Simulation::new(cluster, settings(), now);
    simulation.settle(|_, _, _| {}).unwrap();
    simulation.cluster
}

#[test]
fn a_new_object_is_planned_wave_by_wave() {
    let told = applied(cluster(11), vec![object("web", json!({}))]);
    assert_eq!(told.text, "\
web would be created
  1  hold-object web
  2  apply-agent-account kube-system/proxy-agent, sourcepreserve-proxy-agent
     bind-agent-account sourcepreserve-node-proxier, sourcepreserve-proxy-agent
     apply-agent-policy sourcepreserve-agent-own-node
     bind-agent-policy sourcepreserve-agent-own-node
  3  apply-pool kube-system/proxy-agent-default: image agent:1
     apply-images kube-system/proxy-agent-images-default: image agent:1
     keep-kube-proxy-off kube-system/kube-proxy: required node affinity, sourcepreserve.io/agent-pool DoesNotExist
  4  pull-images work-01, work-02, … (6)
  5  hand-over-node work-01, work-02, … (6): to the agent of pool default
  6  handed-over-node work-01, work-02, … (6)
  7  pull-images work-07, work-08, … (5)
  8  hand-over-node work-07, work-08, … (5): to the agent of pool default
  9  handed-over-node work-07, work-08, … (5)
     delete-images kube-system/proxy-agent-images-default
 10  label-service web/frontend: sourcepreserve.io/preserve=web
 11  localise-service web/frontend: externalTrafficPolicy Cluster -> Local
web becomes Ready: the client address arrives at 1 Service
     its Services, seen from work-01, work-02, … (11): Full -> ClusterOnly
");
    assert!(told.ready);
}

#[test]
fn what_is_applied_already_changes_nothing() {
    let told = applied(settled(cluster(2), vec![object("web", json!({}))]), vec![object("web", json!({}))]);
    assert_eq!(
        told.text,
        "\
web is in the cluster as it is in the file
the operator would change nothing
web stays Ready: the client address arrives at 1 Service
"
    );
    assert!(told.ready);
}

#[test]
fn a_change_waits_for_the_agents_only() {
    let before = settled(cluster(2), vec![object("web", json!({}))]);
    let told = applied(before, vec![object("web", json!({"elsewhere": "Hidden"}))]);
    assert_eq!(
        told.text,
        "\
web would be changed
the operator would change nothing
web stays Ready: the client address arrives at 1 Service
     its Services, seen from work-01, work-02: ClusterOnly -> Hidden
"
    );
    assert!(told.ready);
}

#[test]
fn what_keeps_an_object_from_being_ready_is_told() {
    let mut lost = cluster(2);
    lost.endpoints.clear();
    let told = applied(lost, vec![object("web", json!({}))]);
    assert_eq!(told.text, "\
web would be created
  1  hold-object web
web does not become Ready: NoIngressEndpoint: Service web/frontend has no ready endpoint on an ingress node, so externalTrafficPolicy Local would drop everything: run one of its pods on an ingress node
");
    assert!(!told.ready);
}

#[test]
fn what_is_left_to_do_for_another_object_is_marked() {
    let mut begun = cluster(2);
    begun.objects = merge(BTreeMap::new(), vec![object("web", json!({}))], NOW.parse().unwrap()).0;
    let told =
        applied(begun, vec![object("api", json!({"services": [{"namespace": "web", "name": "api"}]}))]);
    assert_eq!(told.text, "\
api would be created
  1  hold-object api
     hold-object web (without the file, too)
  2  apply-agent-account kube-system/proxy-agent, sourcepreserve-proxy-agent (without the file, too)
     bind-agent-account sourcepreserve-node-proxier, sourcepreserve-proxy-agent (without the file, too)
     apply-agent-policy sourcepreserve-agent-own-node (without the file, too)
     bind-agent-policy sourcepreserve-agent-own-node (without the file, too)
  3  apply-pool kube-system/proxy-agent-default: image agent:1 (without the file, too)
     apply-images kube-system/proxy-agent-images-default: image agent:1 (without the file, too)
     keep-kube-proxy-off kube-system/kube-proxy: required node affinity, sourcepreserve.io/agent-pool DoesNotExist (without the file, too)
  4  pull-images work-01 (without the file, too)
  5  hand-over-node work-01: to the agent of pool default (without the file, too)
  6  handed-over-node work-01 (without the file, too)
  7  pull-images work-02 (without the file, too)
  8  hand-over-node work-02: to the agent of pool default (without the file, too)
  9  handed-over-node work-02 (without the file, too)
     delete-images kube-system/proxy-agent-images-default (without the file, too)
 10  label-service web/frontend: sourcepreserve.io/preserve=web (without the file, too)
 11  localise-service web/frontend: externalTrafficPolicy Cluster -> Local (without the file, too)
api does not become Ready: ServiceMissing: Service web/api does not exist: create it, or take it out of spec.services
");
    assert!(!told.ready);
}

#[test]
fn an_agent_that_is_in_trouble_stays_so_and_is_rolled_back_at_its_deadline() {
    let mut world = Simulation::new(cluster(1), settings(), NOW.parse().unwrap());
    world.cluster.objects = merge(BTreeMap::new(), vec![object("web", json!({}))], world.now).0;
    world.broken.insert("work-01".to_owned(), "container proxy-agent: ImagePullBackOff".to_owned());
    while !world.cluster.pods.values().any(|pod: &Pod| pod.trouble.is_some()) {
        world.controllers();
        for action in world.plan().actions {
            world.carry_out(&action);
        }
    }
    let told = applied(world.cluster, vec![object("web", json!({}))]);
    assert_eq!(
        told.text,
        "\
web is in the cluster as it is in the file
the agent of node work-01 is in trouble, and is taken to stay so
     600 s later
  1  roll-back-node work-01: container proxy-agent: ImagePullBackOff (without the file, too)
  2  handed-back-node work-01 (without the file, too)
web does not become Ready: Degraded: the agent of node work-01 in pool default missed its deadline
"
    );
    assert!(!told.ready);
}

#[test]
fn an_object_that_is_being_deleted_cannot_become_ready() {
    let mut going = settled(cluster(1), vec![object("web", json!({}))]);
    let object_of_cluster = going.objects.get_mut("web").unwrap();
    object_of_cluster.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(NOW.parse().unwrap()));
    let told = applied(going, vec![object("web", json!({}))]);
    assert_eq!(
        told.text,
        "\
web is in the cluster as it is in the file
  1  return-policy web/frontend (without the file, too)
  2  release-service web/frontend (without the file, too)
  3  hand-back-node work-01 (without the file, too)
  4  handed-back-node work-01 (without the file, too)
     forget-node work-01 (without the file, too)
     delete-pool kube-system/proxy-agent-default (without the file, too)
     release-kube-proxy kube-system/kube-proxy (without the file, too)
  5  delete-agent-account kube-system/proxy-agent, sourcepreserve-proxy-agent (without the file, too)
     unbind-agent-account sourcepreserve-node-proxier, sourcepreserve-proxy-agent (without the file, too)
     delete-agent-policy sourcepreserve-agent-own-node (without the file, too)
     unbind-agent-policy sourcepreserve-agent-own-node (without the file, too)
  6  let-object-go web (without the file, too)
web does not become Ready: it is being deleted, and is gone in the end; apply the file then
"
    );
    assert!(!told.ready);
}

#[test]
fn many_waves_are_told_as_one() {
    let told = applied(cluster(9), vec![object("web", json!({"rollout": {"maxUnavailable": 1}}))]);
    assert_eq!(told.text, "\
web would be created
  1  hold-object web
  2  apply-agent-account kube-system/proxy-agent, sourcepreserve-proxy-agent
     bind-agent-account sourcepreserve-node-proxier, sourcepreserve-proxy-agent
     apply-agent-policy sourcepreserve-agent-own-node
     bind-agent-policy sourcepreserve-agent-own-node
  3  apply-pool kube-system/proxy-agent-default: image agent:1
     apply-images kube-system/proxy-agent-images-default: image agent:1
     keep-kube-proxy-off kube-system/kube-proxy: required node affinity, sourcepreserve.io/agent-pool DoesNotExist
  4  pull-images work-01
  5  hand-over-node work-01: to the agent of pool default
  6  handed-over-node work-01
  7  the same in 7 more waves: work-02, work-03, … (7)
 28  pull-images work-09
 29  hand-over-node work-09: to the agent of pool default
 30  handed-over-node work-09
     delete-images kube-system/proxy-agent-images-default
 31  label-service web/frontend: sourcepreserve.io/preserve=web
 32  localise-service web/frontend: externalTrafficPolicy Cluster -> Local
web becomes Ready: the client address arrives at 1 Service
     its Services, seen from work-01, work-02, … (9): Full -> ClusterOnly
");
    assert!(include_str!("../../../../docs/kubectl-isp.md").contains(&told.text), "the manual shows it");
}
