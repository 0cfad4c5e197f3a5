//! Address lists other than Istio's: `NetworkPolicy`s on pods of exposed Services, and the lists of
//! ingress controllers.

use std::collections::BTreeMap;

use isp_plan::Key;

use super::Scope;
use super::addresses::{Policy, judged};
use super::stand_ins::StandIns;
use super::ways::{Entry, Way, Ways};
use crate::doctor::cluster::Pod;
use crate::doctor::finding::{Code, Finding, Subject};
use crate::doctor::judgement::Action;
use crate::doctor::kinds::Kind;
use crate::doctor::lists::{List, NetworkPolicy};

pub(super) fn check(scope: &Scope<'_>, ways: &Ways<'_>, stand_ins: &StandIns, found: &mut Vec<Finding>) {
    network_policies(scope, stand_ins, found);
    for (key, ingress) in &scope.cluster.ingresses {
        let ways = ways.to_ingress(ingress);
        if ways.is_empty() && !ingress.lists.is_empty() {
            found.extend(no_controller(scope, key));
        }
        lists(scope, stand_ins, &Subject::new("Ingress", key), &ingress.lists, &ways, found);
    }
    for (key, settings) in &scope.cluster.controllers {
        let ways = ways.to_controllers(key);
        lists(scope, stand_ins, &Subject::new("ConfigMap", key), &settings.lists, &ways, found);
    }
}

fn lists(
    scope: &Scope<'_>,
    stand_ins: &StandIns,
    subject: &Subject,
    lists: &[List],
    ways: &[Way<'_, '_>],
    found: &mut Vec<Finding>,
) {
    for List { action, used } in lists {
        let alternatives = [vec![used.clone()]];
        let policy = Policy { subject: subject.clone(), action: *action, alternatives: &alternatives };
        found.extend(judged(scope, stand_ins, &policy, ways));
    }
}

fn no_controller(scope: &Scope<'_>, key: &Key) -> Option<Finding> {
    if scope.asked.is_some() || !scope.cluster.knows(Kind::Pod) {
        return None;
    }
    let line = "it has an address list, but no exposed Service leads to an ingress controller";
    Some(
        Finding::new(Code::PolicyNotEnforced, Subject::new("Ingress", key), line)
            .because("Either no controller enforces the list, or the controller was not recognized and the list not judged.")
            .do_this("kubectl get ingressclasses   # the ingress controllers of the cluster")
            .do_this("kubectl isp doctor --service NAMESPACE/NAME   # whether the Service of the controller keeps the source IP"),
    )
}

/// Policies of a namespace add up: a client that one of them admits is admitted.
fn network_policies(scope: &Scope<'_>, stand_ins: &StandIns, found: &mut Vec<Finding>) {
    let mut by_namespace: BTreeMap<&str, Vec<(&Key, &NetworkPolicy)>> = BTreeMap::new();
    for (key, policy) in &scope.cluster.network_policies {
        by_namespace.entry(&key.namespace).or_default().push((key, policy));
    }
    let mut entries: BTreeMap<&Key, Vec<Entry<'_>>> = BTreeMap::new();
    for (service, facts, _) in scope.exposed() {
        let Some(policies) = by_namespace.get(service.namespace.as_str()) else { continue };
        let own = || policies.iter().copied();
        let selects = |policy: &NetworkPolicy, pod: &Pod| policy.selects(&pod.labels);
        let decided = |(_, pod): &(&Key, &Pod)| {
            // NetworkPolicies do not apply to pods with hostNetwork.
            !pod.host_network && !own().any(|(_, policy)| policy.lets_everybody_in && selects(policy, pod))
        };
        let pods: Vec<(&Key, &Pod)> = scope.pods.of(service).into_iter().filter(decided).collect();
        for (key, policy) in own().filter(|(_, policy)| !policy.alternatives.is_empty()) {
            let pods: Vec<(&Key, &Pod)> =
                pods.iter().copied().filter(|(_, pod)| selects(policy, pod)).collect();
            if !pods.is_empty() {
                entries.entry(key).or_default().push(Entry::to_pods(service, facts, pods));
            }
        }
    }
    for (key, entries) in entries {
        let Some(policy) = scope.cluster.network_policies.get(key) else { continue };
        let ways: Vec<Way<'_, '_>> = entries.iter().map(Entry::direct).collect();
        let policy = Policy {
            subject: Subject::new("NetworkPolicy", key),
            action: Action::Allow,
            alternatives: &policy.alternatives,
        };
        found.extend(judged(scope, stand_ins, &policy, &ways));
    }
}
