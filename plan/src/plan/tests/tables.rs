//! Single situations, each with its expected outcome.

use isp_api::conditions::find;
use isp_api::preserve::{Phase, ServiceState, TrafficPolicy};
use k8s_openapi::jiff::SignedDuration;
use serde_json::json;

use super::frontend::{condition, phase, ready, spec, state, story, web, with_object, world};
use super::world::World;
use crate::cluster::{Key, Pod, PodRole};
use crate::ownership::{Owner, ours};
use crate::plan::kube_proxy::is_kept_off;

#[test]
fn the_way_on_and_the_way_off_step_by_step() {
    let mut world = with_object(json!({}));
    let before = world.cluster.services[&web()].clone();
    assert_eq!(
        story(&mut world),
        [
            "hold-object ingresssourcepreserve/web",
            "apply-agent-account serviceaccount/kube-system/proxy-agent",
            "apply-pool daemonset/kube-system/proxy-agent-default",
            "apply-images daemonset/kube-system/proxy-agent-images-default",
            "keep-kube-proxy-off daemonset/kube-system/kube-proxy",
            "pull-images node/work-1",
            "hand-over-node node/work-1",
            "handed-over-node node/work-1",
            "pull-images node/work-2",
            "hand-over-node node/work-2",
            "handed-over-node node/work-2",
            "delete-images daemonset/kube-system/proxy-agent-images-default",
            "label-service service/web/frontend",
            "localise-service service/web/frontend",
        ]
    );
    assert_eq!(phase(&world), Phase::Ready);
    let status = world.cluster.objects["web"].status.clone().unwrap();
    let summary = status.summary.unwrap();
    assert_eq!((summary.services.as_str(), summary.nodes.as_str()), ("1/1", "2/2"));
    assert_eq!(status.services[0].original.as_ref().unwrap().external_traffic_policy, TrafficPolicy::Cluster);

    world.delete_object("web");
    assert_eq!(
        story(&mut world),
        [
            "return-policy service/web/frontend",
            "release-service service/web/frontend",
            "hand-back-node node/work-1",
            "handed-back-node node/work-1",
            "forget-node ingresssourcenode/work-1",
            "hand-back-node node/work-2",
            "handed-back-node node/work-2",
            "forget-node ingresssourcenode/work-2",
            "delete-pool daemonset/kube-system/proxy-agent-default",
            "release-kube-proxy daemonset/kube-system/kube-proxy",
            "delete-agent-account serviceaccount/kube-system/proxy-agent",
            "let-object-go ingresssourcepreserve/web",
        ]
    );
    let after = &world.cluster.services[&web()];
    assert_eq!((after.policy, &after.labels, &after.owners), (before.policy, &before.labels, &before.owners));
}

#[test]
fn nothing_is_touched_while_a_check_fails() {
    type Spoil = fn(&mut World);
    let cases: [(&str, Spoil); 6] = [
        ("NoIngressEndpoint", |world| world.set_endpoints(&web(), "edge", 0)),
        ("NoIngressEndpoint", |world| {
            // A node without kube-proxy is left out; that does not make it an ingress node.
            world.set_endpoints(&web(), "edge", 0);
            world.add_node("virtual", &[("type", "virtual-kubelet")]);
            world.set_endpoints(&web(), "virtual", 1);
        }),
        ("NoIngressNodes", |world| world.node("edge", |node| node.labels.clear())),
        ("ServiceMissing", |world| drop(world.cluster.services.remove(&web()))),
        ("NotExposed", |world| world.service(&web(), |service| service.exposed = false)),
        ("NoServices", |world| {
            let selected = json!([{"namespace": "web", "selector": {"matchLabels": {"a": "b"}}}]);
            world.object("web", |object| object.spec.services = serde_json::from_value(selected).unwrap());
        }),
    ];
    for (reason, spoil) in cases {
        let mut world = with_object(json!({}));
        spoil(&mut world);
        assert_eq!(story(&mut world), ["hold-object ingresssourcepreserve/web"], "{reason}");
        assert_eq!(condition(&world, "Checked").1, reason);
        assert_eq!(phase(&world), Phase::Pending, "{reason}");
    }
}

#[test]
fn a_declared_policy_is_a_conflict_that_names_manager_field_and_value() {
    for by_kubectl in [true, false] {
        let mut world = with_object(json!({}));
        if by_kubectl {
            world.service(&web(), |service| service.last_applied.policy = Some("Cluster".to_owned()));
        } else {
            world.declare_policy(&web(), "argocd", TrafficPolicy::Cluster);
        }
        assert_eq!(story(&mut world), ["hold-object ingresssourcepreserve/web"]);
        let (status, reason, message) = condition(&world, "Conflict");
        assert_eq!((status.as_str(), reason.as_str()), ("True", "FieldDeclared"));
        let manager = if by_kubectl { "kubectl apply" } else { "argocd" };
        for part in [manager, "spec.externalTrafficPolicy", "Cluster", "conflictPolicy: Force"] {
            assert!(message.contains(part), "{message}");
        }
        world.object("web", |object| object.spec.conflict_policy = isp_api::preserve::ConflictPolicy::Force);
        world.settle(|_, _| {});
        assert_eq!(phase(&world), Phase::Ready);
        world.delete_object("web");
        world.settle(|_, _| {});
        assert_eq!(world.cluster.services[&web()].policy, Some(TrafficPolicy::Cluster));
    }
}

#[test]
fn a_policy_that_is_declared_as_local_is_shared_and_stays() {
    let mut world = with_object(json!({}));
    world.declare_policy(&web(), "argocd", TrafficPolicy::Local);
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
    assert!(!ours(&world.cluster.services[&web()].owners));
    world.delete_object("web");
    world.settle(|_, _| {});
    assert_eq!(world.cluster.services[&web()].policy, Some(TrafficPolicy::Local));
}

#[test]
fn who_puts_the_policy_back_is_followed_once_and_then_reported() {
    let mut world = ready();
    world.update_policy(&web(), "helm", TrafficPolicy::Cluster);
    assert_eq!(story(&mut world), ["localise-service service/web/frontend"]);
    world.update_policy(&web(), "helm", TrafficPolicy::Cluster);
    assert!(story(&mut world).is_empty());
    let (status, _, message) = condition(&world, "Conflict");
    assert_eq!(status, "True");
    assert!(message.contains("\"helm\" keeps reverting spec.externalTrafficPolicy"), "{message}");
    // A changed object is tried again.
    world.object("web", |_| {});
    assert_eq!(story(&mut world), ["localise-service service/web/frontend"]);
}

#[test]
fn a_service_that_loses_its_last_endpoint_stays_local_and_says_so() {
    let mut world = ready();
    world.set_endpoints(&web(), "edge", 0);
    let plan = world.plan();
    let reasons: Vec<&str> = plan.notices.iter().map(|notice| notice.reason.as_str()).collect();
    assert_eq!(
        reasons,
        ["NoIngressEndpoint", "NoIngressEndpoint"],
        "one for the object, one for the Service"
    );
    world.now += SignedDuration::from_hours(1);
    assert!(story(&mut world).is_empty());
    assert_eq!(phase(&world), Phase::Degraded);
    world.set_endpoints(&web(), "edge", 1);
    assert!(story(&mut world).is_empty());
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn a_service_falls_back_after_thirty_seconds_and_returns_after_thirty() {
    let mut world = with_object(json!({"whenNoIngressEndpoint": "FallBack"}));
    world.settle(|_, _| {});
    world.set_endpoints(&web(), "edge", 0);
    world.step();
    let lost = world.now;
    assert_eq!(world.plan().wake, Some(lost + SignedDuration::from_secs(30)));
    world.now += SignedDuration::from_secs(29);
    assert!(world.plan().actions.is_empty());
    // A flapping endpoint restarts the wait.
    world.set_endpoints(&web(), "edge", 1);
    world.step();
    world.set_endpoints(&web(), "edge", 0);
    world.step();
    world.now += SignedDuration::from_secs(2);
    assert!(world.plan().actions.is_empty());
    assert_eq!(
        story(&mut world),
        ["fall-back-service service/web/frontend", "return-policy service/web/frontend"]
    );
    assert_eq!((state(&world), phase(&world)), (ServiceState::FellBack, Phase::Degraded));

    world.set_endpoints(&web(), "edge", 1);
    world.step();
    world.now += SignedDuration::from_secs(29);
    assert!(world.plan().actions.is_empty());
    assert_eq!(
        story(&mut world),
        ["label-service service/web/frontend", "localise-service service/web/frontend"],
        "hidden elsewhere first, Local then"
    );
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn terms_that_kube_proxy_has_are_kept_and_come_back() {
    let mut world = world();
    for node in ["edge", "work-2"] {
        world.node(node, |node| drop(node.labels.insert("os".to_owned(), "linux".to_owned())));
    }
    let terms = json!([
        {"matchExpressions": [{"key": "os", "operator": "In", "values": ["linux"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["work-1"]}]},
    ]);
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
    let set = world.cluster.daemon_sets.get_mut(&World::kube_proxy_key()).unwrap();
    set.object.spec.template.spec.as_mut().unwrap().affinity = serde_json::from_value(affinity).unwrap();
    set.owners = vec![Owner { manager: "kubeadm".to_owned(), field: true, ..Owner::default() }];
    let before = set.clone();
    world.add_object("web", &spec(json!({})));
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
    assert!(is_kept_off(&world.cluster.daemon_sets[&World::kube_proxy_key()]));
    world.delete_object("web");
    world.settle(|_, _| {});
    let after = &world.cluster.daemon_sets[&World::kube_proxy_key()];
    assert_eq!(after.object.spec, before.object.spec);
    assert_eq!(after.owners, before.owners);
}

#[test]
fn without_a_kube_proxy_the_condition_names_the_way() {
    for (named, reason) in [
        (json!(null), "KubeProxyNotFound"),
        (json!({"namespace": "a", "daemonSet": "b"}), "KubeProxyNotFound"),
    ] {
        let mut world = with_object(json!({"kubeProxy": named}));
        world.cluster.daemon_sets.clear();
        world.settle(|_, _| {});
        let (_, found, message) = condition(&world, "AgentsReady");
        assert_eq!(found, reason, "{message}");
        assert!(
            message.contains(if named.is_null() { "name it in spec.kubeProxy" } else { "a/b" }),
            "{message}"
        );
    }
}

#[test]
fn the_newer_of_two_objects_gives_way_and_gets_the_service_when_the_older_one_goes() {
    let mut world = ready();
    world.add_object("younger", &spec(json!({})));
    world.settle(|_, _| {});
    let status = world.cluster.objects["younger"].status.clone().unwrap();
    assert_eq!(status.phase, Some(Phase::Conflict));
    assert!(find(&status.conditions, "Conflict").unwrap().message.contains("IngressSourcePreserve web"));
    assert_eq!(phase(&world), Phase::Ready);

    world.delete_object("web");
    world.settle(|_, _| {});
    assert!(!world.cluster.objects.contains_key("web"));
    let label = world.cluster.services[&web()].labels.get("sourcepreserve.io/preserve").cloned();
    assert_eq!(label.as_deref(), Some("younger"));
    assert_eq!(world.cluster.objects["younger"].status.as_ref().unwrap().phase, Some(Phase::Ready));
}

#[test]
fn retain_leaves_everything_and_a_new_object_takes_it_over() {
    let mut world = with_object(json!({"deletionPolicy": "Retain"}));
    world.settle(|_, _| {});
    world.delete_object("web");
    let told = story(&mut world);
    assert_eq!(
        told,
        [
            "apply-pool daemonset/kube-system/proxy-agent-default",
            "retain-service service/web/frontend",
            "let-object-go ingresssourcepreserve/web"
        ]
    );
    assert_eq!(world.cluster.services[&web()].policy, Some(TrafficPolicy::Local));
    assert!(world.cluster.nodes["work-1"].pool.is_some());
    assert!(story(&mut world).is_empty(), "it stays so");

    world.add_object("web", &spec(json!({})));
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
    world.delete_object("web");
    world.settle(|_, _| {});
    assert_eq!(world.cluster.services[&web()].policy, Some(TrafficPolicy::Cluster));
    assert!(world.cluster.nodes["work-1"].pool.is_none());
}

#[test]
fn what_a_vanished_object_has_left_is_put_back() {
    let mut world = ready();
    world.cluster.objects.clear();
    let told = story(&mut world);
    assert_eq!(told[..2], ["return-policy service/web/frontend", "release-service service/web/frontend"]);
    assert!(world.cluster.nodes.values().all(|node| node.pool.is_none()));
}

#[test]
fn a_lost_annotation_is_made_good_from_the_status() {
    let mut world = ready();
    world.service(&web(), |service| service.record = None);
    world.settle(|_, _| {});
    assert_eq!(world.cluster.services[&web()].record.as_ref().unwrap().policy, TrafficPolicy::Cluster);
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn what_is_gone_does_not_hold_up_deletion() {
    let mut world = ready();
    world.delete_object("web");
    world.cluster.services.clear();
    world.remove_node("work-1");
    world.node("work-2", |node| node.ready = false);
    world.settle(|_, _| {});
    assert!(world.cluster.objects.is_empty());
}

#[test]
fn an_object_stays_until_an_agent_that_takes_its_time_has_ended_and_its_report_is_gone() {
    let mut world = ready();
    world.delete_object("web");
    let agent = Key::new("kube-system", "proxy-agent-default-work-2");
    for _ in 0..60 {
        world.controllers();
        let role = Some(PodRole::Agent { pool: "default".to_owned(), revision: "former".to_owned() });
        let daemon_set = Key::new("kube-system", "proxy-agent-default-former");
        let ending = Pod { daemon_set, role, node: "work-2".to_owned(), ..Pod::default() };
        world.cluster.pods.entry(agent.clone()).or_insert(ending);
        world.step();
    }
    assert!(world.cluster.reports.contains_key("work-2") && world.cluster.objects.contains_key("web"));
    assert_eq!(
        story(&mut world),
        [
            "forget-node ingresssourcenode/work-2",
            "delete-agent-account serviceaccount/kube-system/proxy-agent",
            "let-object-go ingresssourcepreserve/web",
        ]
    );
}

#[test]
fn a_changed_kube_proxy_is_followed() {
    let mut world = ready();
    let set = world.cluster.daemon_sets.get_mut(&World::kube_proxy_key()).unwrap();
    set.object.spec.template.spec.as_mut().unwrap().containers[0].image = Some("kube-proxy:2".to_owned());
    let revision = |world: &World| world.cluster.nodes["work-1"].revision.clone();
    let before = revision(&world);
    assert_eq!(
        story(&mut world),
        [
            "apply-pool daemonset/kube-system/proxy-agent-default",
            "apply-images daemonset/kube-system/proxy-agent-images-default",
            "pull-images node/work-1",
            "hand-over-node node/work-1",
            "handed-over-node node/work-1",
            "pull-images node/work-2",
            "hand-over-node node/work-2",
            "handed-over-node node/work-2",
            "delete-images daemonset/kube-system/proxy-agent-images-default",
            "delete-pool daemonset/kube-system/proxy-agent-default",
        ]
    );
    assert_ne!(revision(&world), before);
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn applying_the_same_object_again_changes_nothing() {
    let world = ready();
    let plan = world.plan();
    assert_eq!((plan.actions, plan.notices, plan.wake), (Vec::new(), Vec::new(), None));
}
