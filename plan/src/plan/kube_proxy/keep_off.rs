//! The node affinity that keeps kube-proxy off nodes with an agent: how it is set, how often, and
//! how it is restored.

use isp_api::names::OPERATOR_FIELD_MANAGER;
use isp_api::preserve::KubeProxyStatus;

use super::super::Plan;
use super::super::pools::Pools;
use super::super::snapshot::{Object, Snapshot};
use super::{is_kept_off, kept_off, original, terms};
use crate::action::Action;
use crate::cluster::{DaemonSet, Key};
use crate::ownership::{foreign, is_lost, ours};
use crate::record::AffinityRecord;
use crate::waits::Wait;

/// How often the affinity is set before the operator stops contesting it.
const OFTEN: u32 = 2;
/// How long the affinity must last before the count is reset, in seconds.
const STEADY: u32 = 600;

/// Sets the affinity while a pool needs it, and restores it when no node has an agent.
pub(in crate::plan) fn plan(snapshot: &Snapshot<'_>, pools: &Pools<'_>, plan: &mut Plan) {
    for (key, set) in &snapshot.kube_proxies {
        let (daemon_set, identity) = (Key::clone(key), set.identity.clone());
        if let Some(lead) = pools.keep_off(snapshot, key) {
            let counted = known(lead, key).is_some_and(|known| known.generation == generation(set));
            if !is_kept_off(set) && counted {
                let (terms, record) = (kept_off(&terms(set)), Box::new(AffinityRecord { owner: owner(set) }));
                plan.actions.push(Action::KeepOff { daemon_set, identity, terms, record });
            }
        } else if snapshot.nodes.iter().all(|(_, node)| node.pool.is_none()) {
            plan.actions.extend(release(key, set));
        }
    }
}

/// The field manager that gets the terms back: their current owner, or the recorded one. None if
/// there were no terms.
fn owner(set: &DaemonSet) -> Option<String> {
    let owner = foreign(&set.owners).find(|owner| owner.field).map(|owner| owner.manager.clone());
    owner.or_else(|| set.record.as_ref()?.owner.clone()).filter(|_| !original(&terms(set)).is_empty())
}

fn generation(set: &DaemonSet) -> i64 {
    set.object.metadata.generation.unwrap_or_default()
}

/// The status entry of this kube-proxy, if it is current for the object's generation.
fn known<'o>(object: &'o Object<'_>, key: &Key) -> Option<&'o KubeProxyStatus> {
    let status = object.written.status.as_ref()?;
    let same = status.observed_generation == Some(object.generation);
    status
        .kube_proxy
        .as_ref()
        .filter(|known| same && known.namespace == key.namespace && known.daemon_set == key.name)
}

/// Whether another manager has removed the affinity as often as the operator may set it.
pub(in crate::plan) fn is_fought(
    snapshot: &Snapshot<'_>,
    object: &Object<'_>,
    key: &Key,
    set: &DaemonSet,
) -> bool {
    let often = |known: &KubeProxyStatus| known.kept_off >= OFTEN && known.generation != generation(set);
    let steady = snapshot.clock.has_lasted(&Wait::KeptOff { daemon_set: key.clone() }, STEADY);
    !is_kept_off(set) && !steady && known(object, key).is_some_and(often)
}

/// The new status entry. The affinity is written for a generation of the DaemonSet only after that
/// generation is recorded here.
pub(in crate::plan) fn status(
    snapshot: &Snapshot<'_>,
    pools: &Pools<'_>,
    object: &Object<'_>,
) -> Option<KubeProxyStatus> {
    let before = object.written.status.as_ref().and_then(|status| status.kube_proxy.clone());
    let leads = |(key, _): &(&&Key, &&DaemonSet)| {
        pools.keep_off(snapshot, key).is_some_and(|lead| lead.name == object.name)
    };
    let Some((key, set)) = snapshot.kube_proxies.iter().find(leads) else { return before };
    let counted = known(object, key).cloned();
    let of = |kept_off: u32, generation: i64| KubeProxyStatus {
        namespace: key.namespace.clone(),
        daemon_set: key.name.clone(),
        kept_off,
        generation,
    };
    let wait = Wait::KeptOff { daemon_set: Key::clone(key) };
    if is_kept_off(set) {
        snapshot.clock.end(wait, STEADY);
        return counted.or(before);
    }
    // A removal after a long time, for example by a cluster upgrade, is not a contest.
    let count = counted
        .as_ref()
        .filter(|_| !snapshot.clock.has_lasted(&wait, STEADY))
        .map_or(0, |counted| counted.kept_off);
    match counted {
        Some(counted) if counted.generation == generation(set) || count >= OFTEN => Some(counted),
        _ => Some(of(count + 1, generation(set))),
    }
}

/// Restores kube-proxy. The original terms are returned to their owner, also if managedFields no
/// longer tell which ones are ours.
fn release(key: &Key, set: &DaemonSet) -> Option<Action> {
    let (daemon_set, identity) = (key.clone(), set.identity.clone());
    let record = set.record.as_ref()?;
    let shared = foreign(&set.owners).any(|owner| owner.field);
    let lost = is_lost(&set.owners);
    let before = original(&terms(set));
    match &record.owner {
        owner if lost => {
            let owner = owner.clone().unwrap_or_else(|| OPERATOR_FIELD_MANAGER.to_owned());
            Some(Action::ReturnTerms { daemon_set, identity, owner, terms: before })
        }
        Some(owner) if ours(&set.owners) && !shared && !before.is_empty() => {
            Some(Action::ReturnTerms { daemon_set, identity, owner: owner.clone(), terms: before })
        }
        _ => Some(Action::ReleaseKubeProxy { daemon_set, identity }),
    }
}

/// Whether a kube-proxy still has our record.
pub(in crate::plan) fn anything_left(snapshot: &Snapshot<'_>) -> bool {
    snapshot.kube_proxies.values().any(|set| set.record.is_some())
}
