//! Istio's policies that go by addresses.

use isp_plan::Key;

use super::Scene;
use super::addresses::{Policy, judged};
use super::stand_ins::StandIns;
use super::ways::Ways;
use crate::doctor::finding::{Code, Finding, Subject};
use crate::doctor::judgement::Action;
use crate::doctor::kinds::Kind;
use crate::doctor::policy::{AuthorizationPolicy, Use};

pub(super) fn check(scene: &Scene<'_>, ways: &Ways<'_>, stand_ins: &StandIns, found: &mut Vec<Finding>) {
    for (key, policy) in &scene.cluster.policies {
        let alternatives = policy.alternatives();
        if alternatives.is_empty() {
            continue;
        }
        let Some(ways) = ways.to_policy(key, policy) else {
            found.extend(not_enforced(scene, key));
            continue;
        };
        if scene.asked.is_none() || !ways.is_empty() {
            found.extend(unreadable(key, policy, &alternatives));
        }
        let policy = Policy {
            subject: Subject::new("AuthorizationPolicy", key),
            action: policy.action(),
            alternatives: &alternatives,
        };
        found.extend(judged(scene, stand_ins, &policy, &ways));
    }
}

/// An entry that Istio does not understand. It then leaves the rule out.
fn unreadable(key: &Key, policy: &AuthorizationPolicy, alternatives: &[Vec<Use>]) -> Option<Finding> {
    let used = alternatives.iter().flatten().find(|used| used.unreadable.is_some())?;
    let text = used.unreadable.as_deref()?;
    let follows = match policy.action() {
        Action::Allow => "clients that it means to let in are kept out",
        Action::Deny | Action::Custom => "clients that it means to keep out get in",
        Action::Audit => "nothing is recorded by it",
    };
    let line = format!("{}, {text:?} in {} is no range of addresses", policy.action().as_str(), used.name);
    Some(
        Finding::new(Code::PolicyRangeUnreadable, Subject::new("AuthorizationPolicy", key), line)
            .because(format!("Istio leaves out a rule that it cannot read: {follows}."))
            .do_this(format!(
                "kubectl edit authorizationpolicy -n {} {}   # 198.51.100.0/24, 2001:db8::/32",
                key.namespace, key.name
            )),
    )
}

/// A policy that no proxy has to obey.
fn not_enforced(scene: &Scene<'_>, key: &Key) -> Option<Finding> {
    let cluster = scene.cluster;
    if scene.asked.is_some() || !cluster.knows(Kind::Pod) {
        return None;
    }
    let gone = cluster.knows(Kind::Namespace) && !cluster.namespaces.contains_key(&key.namespace);
    let line = if gone {
        format!("it goes by addresses, and its namespace {} does not exist", key.namespace)
    } else {
        "it goes by addresses, and no pod that it selects has a proxy of Istio's".to_owned()
    };
    Some(
        Finding::new(Code::PolicyNotEnforced, Subject::new("AuthorizationPolicy", key), line)
            .because("Nobody is let in or kept out by it. Pods that start without a sidecar do not obey it either.")
            .do_this(format!("kubectl get pods -n {} --show-labels   # whether its selector, and the injection of sidecars, are as meant", key.namespace)),
    )
}
