//! The pools: which node belongs to which, and the DaemonSet of each.

use std::collections::BTreeMap;

use isp_api::agent::{Agent, filter_daemon_set};
use isp_api::names::{AGENT_NAME, AGENT_POOL_LABEL, RETAINED_ANNOTATION};
use isp_api::preserve::Rollout as Settings;
use k8s_openapi::api::apps::v1::DaemonSet as DaemonSetObject;
use kube::core::{Selector, SelectorExt};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Plan;
use super::kube_proxy::{self, Problem};
use super::scene::{Going, Object, Scene};
use crate::action::Action;
use crate::cluster::{DaemonSet, Key};
use crate::observe::{is_pool, kube_proxy as find_kube_proxy};

pub(super) struct Pools<'a> {
    /// For each node, the pool that it should be in.
    pub(super) assigned: Vec<Option<&'a str>>,
    pub(super) pools: BTreeMap<&'a str, Pool<'a>>,
}

pub(super) struct Pool<'a> {
    /// Its nodes, by their place in the scene.
    pub(super) members: Vec<usize>,
    /// Whether one of them may be handed over now, as far as the objects are concerned.
    pub(super) begun: bool,
    /// The cluster's kube-proxy and the DaemonSet that is made from it.
    pub(super) made: Result<Made<'a>, Problem>,
}

pub(super) struct Made<'a> {
    pub(super) kube_proxy: (&'a Key, &'a DaemonSet),
    pub(super) wanted: DaemonSetObject,
    /// A digest of the DaemonSet, by which a failure is remembered.
    pub(super) revision: String,
    /// Whether the cluster has it as it is wanted.
    pub(super) present: bool,
    /// Whether an object that needs it overrides what others have declared.
    forced: bool,
}

impl<'a> Pools<'a> {
    pub(super) fn new(scene: &Scene<'a>) -> Self {
        let assigned = assign(scene);
        let mut members: BTreeMap<&'a str, (usize, Vec<usize>)> = BTreeMap::new();
        for (node, pool) in assigned.iter().enumerate() {
            if let Some((pool, lead)) = *pool {
                let (first, nodes) = members.entry(pool).or_insert((lead, Vec::new()));
                *first = lead.min(*first);
                nodes.push(node);
            }
        }
        let pools = members
            .into_iter()
            .map(|(name, (lead, members))| {
                let begun = members.iter().any(|node| scene.needing(*node).any(Object::may_begin));
                (name, Pool { begun, made: make(scene, name, lead, &members), members })
            })
            .collect();
        Self { assigned: assigned.into_iter().map(|pool| pool.map(|(name, _)| name)).collect(), pools }
    }

    /// Creates, updates and deletes the pools' DaemonSets.
    pub(super) fn plan(&self, scene: &Scene<'a>, plan: &mut Plan) {
        for (name, pool) in &self.pools {
            let Ok(made) = &pool.made else { continue };
            // An agent that is there is kept up to date; a first one comes when something may be begun.
            // On the way out everything stays as it is until it goes.
            if !made.present && !scene.settings.cleanup && (pool.begun || has_nodes(scene, name)) {
                let daemon_set = Box::new(made.wanted.clone());
                plan.actions.push(Action::ApplyPool { pool: (*name).to_owned(), daemon_set });
            }
        }
        for (key, set) in scene.cluster.daemon_sets.iter().filter(|(_, set)| is_pool(set)) {
            let name = pool_name(set).unwrap_or_default();
            let wanted = self.pools.get(name).is_some_and(|pool| pool.begun);
            if !wanted && !has_nodes(scene, name) && !is_retained(scene, set) {
                plan.actions
                    .push(Action::DeletePool { daemon_set: key.clone(), identity: set.identity.clone() });
            }
        }
    }

    /// Whether a kube-proxy must stay off nodes with an agent.
    pub(super) fn want_kept_off(&self, kube_proxy: &Key) -> bool {
        self.of_kube_proxy(kube_proxy).any(|pool| pool.begun)
    }

    /// Whether an object that needs it overrides a declared affinity.
    pub(super) fn force(&self, kube_proxy: &Key) -> bool {
        self.of_kube_proxy(kube_proxy).any(|pool| pool.made.as_ref().is_ok_and(|made| made.forced))
    }

    fn of_kube_proxy(&self, kube_proxy: &Key) -> impl Iterator<Item = &Pool<'a>> {
        self.pools
            .values()
            .filter(move |pool| pool.made.as_ref().is_ok_and(|made| made.kube_proxy.0 == kube_proxy))
    }

    /// Whether the pools of an object that goes are marked to stay, as far as nobody else needs them.
    pub(super) fn are_retained(&self, scene: &Scene<'_>, object: &Object<'_>) -> bool {
        self.pools.iter().all(|(name, pool)| {
            let of_object = pool.members.iter().any(|node| object.is_elsewhere(*node));
            let present = pool.made.as_ref().is_ok_and(|made| made.present);
            !of_object || !has_nodes(scene, name) || present || pool.made.is_err()
        })
    }
}

/// Whether a DaemonSet of a pool, or a change of kube-proxy, is left that is not to stay.
pub(super) fn anything_left(scene: &Scene<'_>) -> bool {
    let pools = scene.cluster.daemon_sets.values().filter(|set| is_pool(set));
    let (kept, gone): (Vec<_>, Vec<_>) = pools.partition(|set| is_retained(scene, set));
    !gone.is_empty() || (kept.is_empty() && kube_proxy::anything_left(scene.cluster))
}

/// The pool's name, of its DaemonSet.
fn pool_name(set: &DaemonSet) -> Option<&str> {
    set.object.metadata.labels.as_ref()?.get(AGENT_POOL_LABEL).map(String::as_str)
}

/// Whether any node has an agent of the pool, or is on its way back from it.
fn has_nodes(scene: &Scene<'_>, pool: &str) -> bool {
    scene.nodes.iter().any(|(_, node)| node.pool.as_deref() == Some(pool))
}

fn is_retained(scene: &Scene<'_>, set: &DaemonSet) -> bool {
    let annotations = set.object.metadata.annotations.as_ref();
    !scene.settings.cleanup && annotations.is_some_and(|all| all.contains_key(RETAINED_ANNOTATION))
}

/// Whether the nodes of a pool keep their agents though no object needs them.
pub(super) fn pool_is_retained(scene: &Scene<'_>, pool: &str) -> bool {
    let name = format!("{AGENT_NAME}-{pool}");
    scene.cluster.daemon_sets.iter().any(|(key, set)| key.name == name && is_retained(scene, set))
}

/// How fast a pool's nodes are changed: as the oldest object says that has it.
pub(super) fn settings_of(scene: &Scene<'_>, pool: &str) -> Settings {
    let has_it = |object: &&Object<'_>| object.written.spec.pools().iter().any(|own| own.name == pool);
    scene.objects.iter().find(has_it).map(|object| object.written.spec.rollout.clone()).unwrap_or_default()
}

/// The pools of one object, ready to be matched.
struct Selectors<'a>(Vec<(&'a str, Selector)>);

/// Each node that needs an agent belongs to the first pool that matches, of the oldest object that needs one there. One that
/// has an agent and matches no pool any more keeps it for as long as it is needed.
fn assign<'a>(scene: &Scene<'a>) -> Vec<Option<(&'a str, usize)>> {
    let selectors: Vec<Selectors<'a>> = scene
        .objects
        .iter()
        .map(|object| {
            let pools = object.written.spec.pools().into_iter();
            let standing = pools.filter(|pool| !object.pool_gives_way(pool.name));
            Selectors(
                standing
                    .filter_map(|pool| Some((pool.name, isp_api::selector::matcher(pool.selector).ok()?)))
                    .collect(),
            )
        })
        .collect();
    let places: BTreeMap<&str, usize> =
        scene.objects.iter().enumerate().map(|(place, object)| (object.name, place)).collect();
    let as_it_is = |node: usize| {
        let first = scene.needing(node).next()?;
        Some((scene.nodes[node].1.pool.as_deref()?, *places.get(first.name)?))
    };
    let pool_of = |node: usize| {
        let matching = scene.needing(node).find_map(|object| {
            let place = *places.get(object.name)?;
            let labels = &scene.nodes[node].1.labels;
            let found = selectors[place].0.iter().find(|(_, selector)| selector.matches(labels))?;
            Some((found.0, place))
        });
        matching.or_else(|| as_it_is(node))
    };
    (0..scene.nodes.len()).map(pool_of).collect()
}

fn make<'a>(scene: &Scene<'a>, name: &str, lead: usize, members: &[usize]) -> Result<Made<'a>, Problem> {
    let spec = &scene.objects[lead].written.spec;
    let (key, set) = find_kube_proxy(&scene.cluster.daemon_sets, spec.kube_proxy.as_ref())?;
    let kubeconfig = kube_proxy::kubeconfig(scene.cluster, key, set)?;
    let agent = Agent { image: &scene.settings.agent_image, pool: name, kubeconfig: &kubeconfig };
    let mut wanted = filter_daemon_set(&set.object, agent)
        .map_err(|error| Problem::Unusable(key.clone(), Box::new(error)))?;
    let digest = Sha256::digest(json!(wanted).to_string());
    let revision = digest.iter().take(5).fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let retained = |node: &usize| scene.needing(*node).all(|object| object.going == Some(Going::Retain));
    if members.iter().all(retained) {
        let annotations = wanted.metadata.annotations.get_or_insert_default();
        annotations.insert(RETAINED_ANNOTATION.to_owned(), scene.objects[lead].name.to_owned());
    }
    let there = scene.cluster.daemon_sets.get(&crate::observe::key(&wanted.metadata));
    let present = there.is_some_and(|there| {
        let (there_is, wanted_is) = (is_retained(scene, there), wanted.metadata.annotations.is_some());
        covers(&json!(there.object), &json!(wanted)) && there_is == wanted_is
    });
    let forced = members.iter().any(|node| scene.needing(*node).any(Object::forces));
    Ok(Made { kube_proxy: (key, set), wanted, revision, present, forced })
}

/// Whether everything that is wanted is there. The API server adds defaults, and leaves out what says nothing.
pub(super) fn covers(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            there.get(name).map_or_else(|| says_nothing(wanted), |there| covers(there, wanted))
        }),
        (Value::Array(there), Value::Array(wanted)) => {
            there.len() == wanted.len()
                && there.iter().zip(wanted).all(|(there, wanted)| covers(there, wanted))
        }
        (there, wanted) => there == wanted,
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(says_nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_may_be_added_and_what_says_nothing_left_out_but_nothing_else_may_differ() {
        let wanted = json!({"a": 1, "quiet": false, "empty": {"list": []}, "items": [{"x": "y"}]});
        for (there, same) in [
            (json!({"a": 1, "items": [{"x": "y", "default": true}], "more": 2}), true),
            (json!({"a": 2, "items": [{"x": "y"}]}), false),
            (json!({"a": 1, "items": []}), false),
            (json!({"a": 1, "items": [{"x": "y"}, {"x": "z"}]}), false),
            (json!({"a": 1, "items": [{"x": "y"}], "quiet": true}), false),
            (json!({"items": [{"x": "y"}]}), false),
        ] {
            assert_eq!(covers(&there, &wanted), same, "{there}");
        }
    }
}
