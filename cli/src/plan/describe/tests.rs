use isp_api::preserve::{IngressSourcePreserveStatus, ServiceLabel};
use isp_plan::action::without_revision;
use isp_plan::cluster::{Identity, Node, Service};
use isp_plan::own::OwnKind;
use isp_plan::record::{AffinityRecord, Failure, OriginalLabel};
use serde_json::json;

use super::*;

fn service(step: ServiceStep) -> Action {
    let label = ServiceLabel { key: "sourcepreserve.io/preserve".to_owned(), value: "web".to_owned() };
    let shape = Shape { label: Some(label), ..Shape::default() };
    Action::ShapeService {
        service: Key::new("web", "frontend"),
        identity: Identity::default(),
        shape: Box::new(shape),
        step,
    }
}

fn node(name: &str, pool: Option<&str>, step: NodeStep) -> Action {
    let failure = Failure {
        pool: "default".to_owned(),
        revision: "1".to_owned(),
        reason: "container proxy-agent: ImagePullBackOff".to_owned(),
    };
    let shape = NodeShape { pool: pool.map(str::to_owned), failure: Some(failure), ..NodeShape::default() };
    Action::ShapeNode { node: name.to_owned(), identity: Identity::default(), shape, step }
}

fn pool(name: &str) -> Action {
    let daemon_set = json!({
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"selector": {}, "template": {"spec": {"containers": [{"name": "proxy-agent", "image": "agent:1"}]}}},
    });
    Action::ApplyPool {
        pool: "default".to_owned(),
        daemon_set: serde_json::from_value(daemon_set).unwrap_or_default(),
    }
}

fn finalizer(held: bool) -> Action {
    Action::Finalizer { object: "web".to_owned(), identity: Identity::default(), held }
}

fn own(kind: OwnKind, key: Key) -> [Action; 2] {
    let (identity, object) = (Identity::default(), Box::default());
    [Action::ApplyOwn { kind, key: key.clone(), object }, Action::DeleteOwn { kind, key, identity }]
}

fn returned(fields: Returned) -> Action {
    Action::ReturnFields {
        service: Key::new("web", "frontend"),
        identity: Identity::default(),
        owner: "kubectl-create".to_owned(),
        fields,
    }
}

/// A Service behind a load balancer, a node with an agent, and one object of the operator.
fn cluster() -> Cluster {
    let mut cluster = Cluster::default();
    let balanced = Service { balanced: true, ..Service::default() };
    cluster.services.insert(Key::new("web", "frontend"), balanced);
    let served = Node { pool: Some("default".to_owned()), ..Node::default() };
    cluster.nodes.insert("work-2".to_owned(), served);
    let known = [(Key::new("", "sourcepreserve-proxy-agent"), isp_plan::cluster::Written::default())];
    cluster.own.insert(OwnKind::Role, known.into());
    cluster
}

/// Actions with the sentence that each must have.
fn check(table: &[(Action, &str)]) {
    for (action, expected) in table {
        let target = action.target().to_string();
        let name = target.split_once('/').map_or(target.as_str(), |(_, name)| name);
        assert_eq!(describe(&cluster(), action).about(without_revision(name), 1), *expected, "{action}");
    }
}

#[test]
fn actions_on_objects_and_services_are_described() {
    let original = OriginalLabel { key: "team".to_owned(), value: "shop".to_owned(), owner: None };
    check(&[
        (finalizer(true), "add finalizer sourcepreserve.io/restore to IngressSourcePreserve web"),
        (finalizer(false), "remove finalizer sourcepreserve.io/restore from IngressSourcePreserve web"),
        (service(ServiceStep::Label), "set label sourcepreserve.io/preserve=web on Service web/frontend"),
        (
            service(ServiceStep::Localise),
            "set externalTrafficPolicy=Local on Service web/frontend (was Cluster); its load balancer must follow \
             healthCheckNodePort",
        ),
        (
            service(ServiceStep::Open),
            "remove the label from Service web/frontend: no ingress node has a ready endpoint, so every node serves it",
        ),
        (
            service(ServiceStep::FallBack),
            "remove the label from Service web/frontend: no ingress node has a ready endpoint",
        ),
        (
            service(ServiceStep::GiveUpPolicy),
            "set externalTrafficPolicy=Cluster on Service web/frontend (was Local)",
        ),
        (
            service(ServiceStep::Release),
            "remove the operator's label and annotation from Service web/frontend",
        ),
        (service(ServiceStep::Retain), "keep Service web/frontend as it is (deletionPolicy: Retain)"),
        (
            returned(Returned::Policy),
            "set externalTrafficPolicy=Cluster on Service web/frontend as field manager kubectl-create",
        ),
        (
            returned(Returned::Label(original)),
            "set label team=shop again on Service web/frontend as field manager kubectl-create",
        ),
    ]);
}

#[test]
fn actions_of_mode_beside_are_described() {
    check(&[
        (
            service(ServiceStep::TakeOver),
            "set label service.kubernetes.io/service-proxy-name=ingress-source-preserve on Service web/frontend: every \
             kube-proxy skips it, and the agents serve it",
        ),
        (
            returned(Returned::ToKubeProxy),
            "remove label service.kubernetes.io/service-proxy-name from Service web/frontend: every kube-proxy serves it again",
        ),
        (service(ServiceStep::GivenBack), "record that every kube-proxy serves Service web/frontend again"),
        (
            pool("proxy-agent-beside"),
            "create DaemonSet kube-system/proxy-agent-beside (image agent:1), which runs on every node",
        ),
        (
            Action::DeletePool {
                daemon_set: Key::new("kube-system", "proxy-agent-beside"),
                identity: Identity::default(),
            },
            "delete DaemonSet kube-system/proxy-agent-beside",
        ),
        (
            Action::Forget { report: "work-1.beside".to_owned(), identity: Identity::default() },
            "delete IngressSourceNode work-1.beside",
        ),
    ]);
}

#[test]
fn actions_on_nodes_are_described() {
    check(&[
        (node("work-1", None, NodeStep::PullImages), "pull the agent's images on node work-1"),
        (
            node("work-1", None, NodeStep::GiveUpImages),
            "stop pulling the agent's images on node work-1: container proxy-agent: ImagePullBackOff",
        ),
        (
            node("work-1", Some("default"), NodeStep::HandOver),
            "move node work-1 to the agent of pool default",
        ),
        (
            node("work-2", Some("default"), NodeStep::HandOver),
            "move node work-2 to the new revision of the agent of pool default",
        ),
        (
            node("work-1", None, NodeStep::HandedOver),
            "wait until the agent serves node work-1, then record that the move is complete",
        ),
        (node("work-1", None, NodeStep::HandBack), "move node work-1 back to the cluster's kube-proxy"),
        (
            node("work-1", None, NodeStep::RollBack),
            "roll back node work-1 to the cluster's kube-proxy: container proxy-agent: ImagePullBackOff",
        ),
        (
            node("work-1", Some("default"), NodeStep::RollBack),
            "roll back node work-1 to the previous revision of the agent: container proxy-agent: \
             ImagePullBackOff",
        ),
        (
            node("work-1", None, NodeStep::Suspect),
            "schedule a restart of the agent on node work-1: another kube-proxy wrote rules there",
        ),
        (node("work-1", None, NodeStep::StopAgent), "stop the agent on node work-1, to restart it"),
        (node("work-1", None, NodeStep::StartAgent), "start the agent on node work-1 again"),
        (
            node("work-1", None, NodeStep::HandedBack),
            "wait until the cluster's kube-proxy serves node work-1, then record that the move is complete",
        ),
        (
            node("work-1", None, NodeStep::Release),
            "remove the operator's labels and annotations from node work-1",
        ),
    ]);
}

#[test]
fn actions_on_daemon_sets_and_objects_of_the_operator_are_described() {
    let identity = Identity::default;
    let kube_proxy = || Key::new("kube-system", "kube-proxy");
    let [create_account, delete_account] = own(OwnKind::Account, Key::new("kube-system", "proxy-agent"));
    let [update_role, _] = own(OwnKind::Role, Key::new("", "sourcepreserve-proxy-agent"));
    check(&[
        (
            Action::KeepOff {
                daemon_set: kube_proxy(),
                identity: identity(),
                terms: Vec::new(),
                record: Box::new(AffinityRecord { owner: None }),
            },
            "add node affinity to DaemonSet kube-system/kube-proxy: sourcepreserve.io/agent-pool DoesNotExist",
        ),
        (
            Action::ReturnTerms {
                daemon_set: kube_proxy(),
                identity: identity(),
                owner: "kubeadm".to_owned(),
                terms: Vec::new(),
            },
            "restore the node affinity of DaemonSet kube-system/kube-proxy as field manager kubeadm",
        ),
        (
            Action::ReleaseKubeProxy { daemon_set: kube_proxy(), identity: identity() },
            "remove the operator's node affinity and annotation from DaemonSet kube-system/kube-proxy",
        ),
        (
            pool("proxy-agent-default-0123456789"),
            "create DaemonSet kube-system/proxy-agent-default (image agent:1)",
        ),
        (
            pool("proxy-agent-images-default-0123456789"),
            "create DaemonSet kube-system/proxy-agent-images-default (pulls image agent:1)",
        ),
        (
            Action::DeletePool {
                daemon_set: Key::new("kube-system", "proxy-agent-default-0123456789"),
                identity: identity(),
            },
            "delete DaemonSet kube-system/proxy-agent-default",
        ),
        (
            Action::Forget { report: "work-1".to_owned(), identity: identity() },
            "delete IngressSourceNode work-1",
        ),
        (create_account, "create ServiceAccount kube-system/proxy-agent"),
        (delete_account, "delete ServiceAccount kube-system/proxy-agent"),
        (update_role, "update ClusterRole sourcepreserve-proxy-agent"),
        (
            Action::Status {
                object: "web".to_owned(),
                uid: String::new(),
                status: Box::new(IngressSourcePreserveStatus::default()),
            },
            "update the status of IngressSourcePreserve web",
        ),
    ]);
}

#[test]
fn several_targets_share_a_sentence() {
    let sentence = describe(&cluster(), &node("work-1", Some("default"), NodeStep::HandOver));
    assert_eq!(sentence.about("work-1, work-3", 2), "move nodes work-1, work-3 to the agent of pool default");
    let policy = own(OwnKind::PodPolicy, Key::new("", "a")).map(|action| describe(&cluster(), &action));
    assert_eq!(policy[0].about("a, b", 2), "create MutatingAdmissionPolicies a, b");
}
