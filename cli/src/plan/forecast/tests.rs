#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod beside;

use isp_api::preserve::TrafficPolicy;
use isp_plan::cluster::{Node, Pod, Service};
use isp_plan::ownership::Owner;
use isp_plan::{Key, observe};
use serde_json::{Value, json};

use super::super::merge::merge;
use super::super::render::{INDENT, render};
use super::*;
use crate::text::wrap_lines;

const NOW: &str = "2026-01-01T00:00:00Z";

/// An ingress node, so many others, kubeadm's kube-proxy, and a Service with an ingress endpoint.
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
    let told = forecast(cluster, &before, settings(), now, &changes);
    isp_testkit::schema::assert_output("plan", &json!(told));
    told
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
    assert_eq!(
        render(&told),
        "\
web would be created
  1  add finalizer sourcepreserve.io/restore to IngressSourcePreserve web
  2  create ServiceAccount kube-system/proxy-agent
     create ClusterRole sourcepreserve-proxy-agent
     create ClusterRoleBindings sourcepreserve-node-proxier, sourcepreserve-proxy-agent
     create ValidatingAdmissionPolicy sourcepreserve-agent-own-node
     create ValidatingAdmissionPolicyBinding sourcepreserve-agent-own-node
  3  create DaemonSet kube-system/proxy-agent-default (image agent:1)
     create DaemonSet kube-system/proxy-agent-images-default (pulls image agent:1)
     add node affinity to DaemonSet kube-system/kube-proxy: sourcepreserve.io/agent-pool DoesNotExist
  4  pull the agent's images on nodes work-01, work-02 and 4 more
  5  move nodes work-01, work-02 and 4 more to the agent of pool default
  6  wait until the agent serves nodes work-01, work-02 and 4 more, then record that the move is complete
  7  pull the agent's images on nodes work-07, work-08 and 3 more
  8  move nodes work-07, work-08 and 3 more to the agent of pool default
  9  wait until the agent serves nodes work-07, work-08 and 3 more, then record that the move is complete
     delete DaemonSet kube-system/proxy-agent-images-default
 10  set label sourcepreserve.io/preserve=web on Service web/frontend
 11  set externalTrafficPolicy=Local on Service web/frontend (was Cluster)
Actions with the same step number run in any order.
web becomes Ready: the source IP reaches 1 Service
     view of its Services on nodes work-01, work-02 and 9 more: Full -> ClusterOnly
"
    );
    assert!(told.ready());
}

#[test]
fn a_file_that_is_applied_already_changes_nothing() {
    let told = applied(settled(cluster(2), vec![object("web", json!({}))]), vec![object("web", json!({}))]);
    assert_eq!(
        render(&told),
        "\
web is unchanged: the cluster has it as in the file
the operator has nothing to change
web stays Ready: the source IP reaches 1 Service
"
    );
    assert!(told.ready());
}

#[test]
fn a_change_waits_for_the_agents_only() {
    let before = settled(cluster(2), vec![object("web", json!({}))]);
    let told = applied(before, vec![object("web", json!({"elsewhere": "Hidden"}))]);
    assert_eq!(
        render(&told),
        "\
web would be changed
the operator has nothing to change
web stays Ready: the source IP reaches 1 Service
     view of its Services on nodes work-01, work-02: ClusterOnly -> Hidden
"
    );
    assert!(told.ready());
}

#[test]
fn the_reason_why_an_object_does_not_become_ready_is_printed() {
    let mut lost = cluster(2);
    lost.endpoints.clear();
    let told = applied(lost, vec![object("web", json!({}))]);
    assert_eq!(render(&told), "\
web would be created
  1  add finalizer sourcepreserve.io/restore to IngressSourcePreserve web
Actions with the same step number run in any order.
web does not become Ready: NoIngressEndpoint: Service web/frontend has no ready endpoint on an ingress node, so externalTrafficPolicy Local would drop all external traffic: run one of its pods on an ingress node
");
    assert!(!told.ready());
}

#[test]
fn actions_that_are_pending_without_the_file_are_marked() {
    let mut begun = cluster(2);
    begun.objects = merge(BTreeMap::new(), vec![object("web", json!({}))], NOW.parse().unwrap()).0;
    let told =
        applied(begun, vec![object("api", json!({"services": [{"namespace": "web", "name": "api"}]}))]);
    assert_eq!(render(&told), "\
api would be created
  1  add finalizer sourcepreserve.io/restore to IngressSourcePreserve api
     add finalizer sourcepreserve.io/restore to IngressSourcePreserve web (pending without the file, too)
  2  create ServiceAccount kube-system/proxy-agent (pending without the file, too)
     create ClusterRole sourcepreserve-proxy-agent (pending without the file, too)
     create ClusterRoleBindings sourcepreserve-node-proxier, sourcepreserve-proxy-agent (pending without the file, too)
     create ValidatingAdmissionPolicy sourcepreserve-agent-own-node (pending without the file, too)
     create ValidatingAdmissionPolicyBinding sourcepreserve-agent-own-node (pending without the file, too)
  3  create DaemonSet kube-system/proxy-agent-default (image agent:1) (pending without the file, too)
     create DaemonSet kube-system/proxy-agent-images-default (pulls image agent:1) (pending without the file, too)
     add node affinity to DaemonSet kube-system/kube-proxy: sourcepreserve.io/agent-pool DoesNotExist (pending without the file, too)
  4  pull the agent's images on node work-01 (pending without the file, too)
  5  move node work-01 to the agent of pool default (pending without the file, too)
  6  wait until the agent serves node work-01, then record that the move is complete (pending without the file, too)
  7  pull the agent's images on node work-02 (pending without the file, too)
  8  move node work-02 to the agent of pool default (pending without the file, too)
  9  wait until the agent serves node work-02, then record that the move is complete (pending without the file, too)
     delete DaemonSet kube-system/proxy-agent-images-default (pending without the file, too)
 10  set label sourcepreserve.io/preserve=web on Service web/frontend (pending without the file, too)
 11  set externalTrafficPolicy=Local on Service web/frontend (was Cluster) (pending without the file, too)
Actions with the same step number run in any order.
api does not become Ready: ServiceMissing: Service web/api does not exist: create it, or remove it from spec.services
");
    assert!(!told.ready());
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
        render(&told),
        "\
web is unchanged: the cluster has it as in the file
the agent on node work-01 fails; the plan assumes that it keeps failing
     wait 600 s
  1  roll back node work-01 to the cluster's kube-proxy: container proxy-agent: ImagePullBackOff (pending without the file, too)
  2  wait until the cluster's kube-proxy serves node work-01, then record that the move is complete (pending without the file, too)
Actions with the same step number run in any order.
web does not become Ready: Degraded: the agent of node work-01 in pool default missed its deadline
"
    );
    assert!(!told.ready());
}

#[test]
fn an_object_that_is_being_deleted_cannot_become_ready() {
    let mut going = settled(cluster(1), vec![object("web", json!({}))]);
    let object_of_cluster = going.objects.get_mut("web").unwrap();
    object_of_cluster.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(NOW.parse().unwrap()));
    let told = applied(going, vec![object("web", json!({}))]);
    assert_eq!(
        render(&told),
        "\
web is unchanged: the cluster has it as in the file
  1  set externalTrafficPolicy=Cluster on Service web/frontend as field manager kubectl-create (pending without the file, too)
  2  remove the operator's label and annotation from Service web/frontend (pending without the file, too)
  3  move node work-01 back to the cluster's kube-proxy (pending without the file, too)
  4  wait until the cluster's kube-proxy serves node work-01, then record that the move is complete (pending without the file, too)
     delete IngressSourceNode work-01 (pending without the file, too)
     delete DaemonSet kube-system/proxy-agent-default (pending without the file, too)
     remove the operator's node affinity and annotation from DaemonSet kube-system/kube-proxy (pending without the file, too)
  5  delete ServiceAccount kube-system/proxy-agent (pending without the file, too)
     delete ClusterRole sourcepreserve-proxy-agent (pending without the file, too)
     delete ClusterRoleBindings sourcepreserve-node-proxier, sourcepreserve-proxy-agent (pending without the file, too)
     delete ValidatingAdmissionPolicy sourcepreserve-agent-own-node (pending without the file, too)
     delete ValidatingAdmissionPolicyBinding sourcepreserve-agent-own-node (pending without the file, too)
  6  remove finalizer sourcepreserve.io/restore from IngressSourcePreserve web (pending without the file, too)
Actions with the same step number run in any order.
web does not become Ready: Deleted: the object is being deleted; apply the file again once it is gone
"
    );
    assert!(!told.ready());
}

#[test]
fn many_equal_waves_are_printed_once() {
    let told = applied(cluster(9), vec![object("web", json!({"rollout": {"maxUnavailable": 1}}))]);
    assert_eq!(
        render(&told),
        "\
web would be created
  1  add finalizer sourcepreserve.io/restore to IngressSourcePreserve web
  2  create ServiceAccount kube-system/proxy-agent
     create ClusterRole sourcepreserve-proxy-agent
     create ClusterRoleBindings sourcepreserve-node-proxier, sourcepreserve-proxy-agent
     create ValidatingAdmissionPolicy sourcepreserve-agent-own-node
     create ValidatingAdmissionPolicyBinding sourcepreserve-agent-own-node
  3  create DaemonSet kube-system/proxy-agent-default (image agent:1)
     create DaemonSet kube-system/proxy-agent-images-default (pulls image agent:1)
     add node affinity to DaemonSet kube-system/kube-proxy: sourcepreserve.io/agent-pool DoesNotExist
  4  pull the agent's images on node work-01
  5  move node work-01 to the agent of pool default
  6  wait until the agent serves node work-01, then record that the move is complete
  7  repeat steps 4 to 6 in 7 more waves: work-02, work-03 and 5 more
 28  pull the agent's images on node work-09
 29  move node work-09 to the agent of pool default
 30  wait until the agent serves node work-09, then record that the move is complete
     delete DaemonSet kube-system/proxy-agent-images-default
 31  set label sourcepreserve.io/preserve=web on Service web/frontend
 32  set externalTrafficPolicy=Local on Service web/frontend (was Cluster)
Actions with the same step number run in any order.
web becomes Ready: the source IP reaches 1 Service
     view of its Services on nodes work-01, work-02 and 7 more: Full -> ClusterOnly
"
    );
    assert!(include_str!("../../../../docs/kubectl-isp.md").contains(&render(&told)), "the manual shows it");
    let narrow = wrap_lines(&render(&told), Some(80), INDENT);
    assert!(narrow.lines().all(|line| line.len() <= 80), "{narrow}");
    assert!(
        narrow.contains(
            "     add node affinity to DaemonSet kube-system/kube-proxy:\n       sourcepreserve.io/agent-pool DoesNotExist\n"
        ),
        "{narrow}"
    );
}

#[test]
fn json_has_the_action_names_of_the_operator_and_a_description_for_people() {
    let told = applied(cluster(1), vec![object("web", json!({}))]);
    let json = json!(told);
    let steps = json["steps"].as_array().unwrap();
    assert_eq!((&steps[0]["step"], &steps[0]["waitSeconds"]), (&json!(1), &json!(0)));
    let last = steps.last().unwrap();
    assert_eq!(
        last["actions"],
        json!([{
            "action": "localise-service", "object": "service/web/frontend", "pendingWithoutFile": false,
            "description": "set externalTrafficPolicy=Local on Service web/frontend (was Cluster)",
        }])
    );
    assert_eq!(
        json["objects"],
        json!([{
            "name": "web", "change": "created", "ready": true, "message": "the source IP reaches 1 Service",
            "views": [{"from": "Full", "to": "ClusterOnly", "nodes": ["work-01"]}],
        }])
    );
    let lines = render(&told).lines().filter(|line| line.starts_with(' ')).count();
    let actions = steps.iter().flat_map(|step| step["actions"].as_array().unwrap()).count();
    assert_eq!(lines, actions - 1 + 1, "two ClusterRoleBindings share a line, and the view has one");
}
