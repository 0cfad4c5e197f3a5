//! The pools: the assignment of nodes to pools, and the DaemonSets of each pool: one runs the
//! agents of a revision, one prepulls its images while nodes still have to be handed over to it.

mod made;

use std::collections::BTreeMap;

use isp_api::names::{ACCOUNT_ANNOTATION, AGENT_POOL_LABEL, RETAINED_ANNOTATION};
use isp_api::preserve::Rollout as Settings;
use kube::core::{Selector, SelectorExt};

pub(super) use self::made::{Made, covers};
use super::Plan;
use super::accounts::{self, Accounts};
use super::beside;
use super::kube_proxy::{self, Problem};
use super::rollout::{Origin, Source, remembered};
use super::snapshot::{Deletion, Object, Snapshot};
use crate::action::Action;
use crate::cluster::{DaemonSet, Key, PodRole};
use crate::observe::{HOME, role};

pub(super) struct Pools<'a> {
    /// For each node, the pool it should be in.
    pub(super) assigned: Vec<Option<&'a str>>,
    pub(super) by_name: BTreeMap<&'a str, Pool<'a>>,
    accounts: Accounts,
}

pub(super) struct Pool<'a> {
    /// Its nodes, as indices into the snapshot.
    pub(super) members: Vec<usize>,
    /// Index of the oldest object that needs it. None for a retained pool that no object needs.
    pub(super) lead: Option<usize>,
    /// Whether the objects permit handing over one of its nodes now.
    pub(super) begun: bool,
    /// Its DaemonSets and what they are made from.
    pub(super) made: Result<Made<'a>, Problem>,
    /// Whether the agents' ServiceAccount and its RBAC are in place.
    pub(super) account: Result<(), accounts::Problem>,
}

impl Pool<'_> {
    /// The target revision of its nodes.
    pub(super) fn revision(&self) -> Option<&str> {
        self.made.as_ref().ok().map(|made| made.revision.as_str())
    }

    /// Whether its nodes must be handed back, because another manager keeps removing kube-proxy's
    /// node affinity.
    pub(super) fn gives_up(&self) -> bool {
        matches!(self.made, Err(Problem::NotKeptOff { .. }))
    }
}

impl<'a> Pools<'a> {
    pub(super) fn new(snapshot: &Snapshot<'a>) -> Self {
        let assigned = assign(snapshot);
        let mut members: BTreeMap<&'a str, (Option<usize>, Vec<usize>)> = BTreeMap::new();
        for (node, pool) in assigned.iter().enumerate() {
            if let Some((pool, lead)) = *pool {
                let (first, nodes) = members.entry(pool).or_insert((lead, Vec::new()));
                *first = [*first, lead].into_iter().flatten().min();
                nodes.push(node);
            }
        }
        let begun = |members: &[usize]| members.iter().any(|node| may_begin(snapshot, *node));
        let soon = members.iter().filter_map(|(name, (lead, members))| {
            let origin = Origin::find(snapshot.cluster, &source(snapshot, name, *lead)).ok()?;
            (begun(members) || has_nodes(snapshot, name, None)).then(|| origin.namespace().to_owned())
        });
        let beside = beside::is_needed(snapshot)
            && (beside::may_begin(snapshot) || snapshot.made.iter().any(|(key, _)| **key == beside::key()));
        let accounts = Accounts::new(snapshot, soon.chain(beside.then(|| HOME.to_owned())));
        let pools = members
            .into_iter()
            .map(|(name, (lead, members))| {
                let begun = begun(&members);
                let made = made::make(snapshot, &accounts, name, source(snapshot, name, lead), &members);
                let account = match &made {
                    Ok(made) => accounts.check(made.origin.namespace()),
                    Err(_) => Ok(()),
                };
                (name, Pool { members, lead, begun, made, account })
            })
            .collect();
        let assigned = assigned.into_iter().map(|pool| pool.map(|(name, _)| name)).collect();
        Self { assigned, by_name: pools, accounts }
    }

    /// Creates, updates and deletes the pools' DaemonSets and the agents' ServiceAccount.
    pub(super) fn plan(&self, snapshot: &Snapshot<'a>, plan: &mut Plan) {
        self.accounts.plan(snapshot, plan);
        for (name, pool) in &self.by_name {
            let (Ok(made), Ok(())) = (&pool.made, &pool.account) else { continue };
            // During cleanup DaemonSets are only deleted, not updated.
            if snapshot.settings.cleanup {
                continue;
            }
            let mut apply = |daemon_set: &k8s_openapi::api::apps::v1::DaemonSet| {
                let daemon_set = Box::new(daemon_set.clone());
                plan.actions.push(Action::ApplyPool { pool: (*name).to_owned(), daemon_set });
            };
            // Existing agents are kept up to date. The first DaemonSet is created when an object
            // may begin.
            if !made.present && (pool.begun || has_nodes(snapshot, name, None)) {
                apply(&made.agents);
            }
            if !made.images_present && wants_images(snapshot, name, pool) {
                apply(&made.images);
            }
        }
        for (key, set) in snapshot.made.iter().copied().filter(|(_, set)| has_pool(set)) {
            // A retained pool that still has nodes is in `by_name` and handled like any other.
            let kept = is_retained(snapshot, set) && !self.by_name.contains_key(pool_of(set));
            if !self.is_wanted(snapshot, set) && !kept {
                plan.actions
                    .push(Action::DeletePool { daemon_set: key.clone(), identity: set.identity.clone() });
            }
        }
    }

    /// Whether the account of agents in the namespace is in place.
    pub(super) fn check_account(&self, namespace: &str) -> Result<(), accounts::Problem> {
        self.accounts.check(namespace)
    }

    /// The UID of the account of agents in the namespace.
    pub(super) fn account<'c>(&self, snapshot: &Snapshot<'c>, namespace: &str) -> Option<&'c str> {
        self.accounts.uid(snapshot.cluster, namespace)
    }

    /// Whether an existing DaemonSet is still needed.
    fn is_wanted(&self, snapshot: &Snapshot<'_>, set: &DaemonSet) -> bool {
        match role(&set.object.metadata) {
            Some(PodRole::Agent { pool, revision }) => {
                // Keep it as long as `plan` would recreate it.
                let current = self.by_name.get(pool.as_str()).is_some_and(|found| {
                    found.revision() == Some(&revision) && (found.begun || has_nodes(snapshot, &pool, None))
                });
                current || has_nodes(snapshot, &pool, Some(&revision))
            }
            Some(PodRole::Images { revision }) => {
                let current = self.by_name.iter().find(|(_, pool)| pool.revision() == Some(&revision));
                current.is_some_and(|(name, pool)| wants_images(snapshot, name, pool))
                    || snapshot.nodes.iter().any(|(_, node)| node.images.as_ref() == Some(&revision))
            }
            Some(PodRole::Beside) | None => true,
        }
    }

    /// The oldest object that needs this kube-proxy kept off nodes with an agent.
    pub(super) fn keep_off<'s>(
        &self,
        snapshot: &'s Snapshot<'a>,
        kube_proxy: &Key,
    ) -> Option<&'s Object<'a>> {
        let of_it = |pool: &&Pool<'a>| {
            let displaced = pool.made.as_ref().ok().and_then(|made| made.origin.displaced());
            displaced.is_some_and(|(key, _)| key == kube_proxy)
        };
        let begun = self.by_name.values().filter(of_it).filter(|pool| pool.begun);
        snapshot.objects.get(begun.filter_map(|pool| pool.lead).min()?)
    }

    /// Whether the pools of an object that is being deleted are up to date, which includes the
    /// retained mark if no other object needs them.
    pub(super) fn are_retained(&self, snapshot: &Snapshot<'_>, object: &Object<'_>) -> bool {
        self.by_name.iter().all(|(name, pool)| {
            let of_object = pool.members.iter().any(|node| object.needs_agent(*node));
            let present = pool.made.as_ref().is_ok_and(|made| made.present);
            !of_object || !has_nodes(snapshot, name, None) || present || pool.made.is_err()
        })
    }
}

/// Whether images must be prepulled: a node still has to be handed over to the pool's revision.
fn wants_images(snapshot: &Snapshot<'_>, name: &str, pool: &Pool<'_>) -> bool {
    let Some(revision) = pool.revision() else { return false };
    let has_it = |node: &usize| {
        let node = snapshot.nodes[*node].1;
        // A restarting node already has the images.
        let restarts = node.handover.as_ref().is_some_and(|handover| handover.restart);
        let has = node.revision.as_deref() == Some(revision) || restarts;
        node.pool.as_deref() == Some(name) && has
    };
    let failed = |node: &usize| {
        let failure = snapshot.nodes[*node].1.failure.as_ref();
        failure.is_some_and(|failure| failure.pool == name && failure.revision == revision)
    };
    let can = |node: &usize| snapshot.nodes[*node].1.ready && !failed(node);
    (pool.begun && pool.members.iter().any(|node| !has_it(node) && can(node)))
        || snapshot.nodes.iter().any(|(_, node)| node.images.as_deref() == Some(revision))
}

/// Whether changes may start on a node: an object that needs it permits them, or its pool is
/// retained.
pub(super) fn may_begin(snapshot: &Snapshot<'_>, node: usize) -> bool {
    let mut needing = snapshot.needing(node).peekable();
    needing.peek().is_none() || needing.any(Object::may_begin)
}

/// Whether a DaemonSet of ours or a change to kube-proxy is left, apart from retained ones.
pub(super) fn anything_left(snapshot: &Snapshot<'_>) -> bool {
    let (kept, gone): (Vec<_>, Vec<_>) =
        snapshot.made.iter().copied().partition(|(_, set)| is_retained(snapshot, set));
    !gone.is_empty() || (kept.is_empty() && kube_proxy::anything_left(snapshot))
}

/// Whether a node runs the pool's agent, or may be rolled back to it. `revision` limits this to one
/// revision.
fn has_nodes(snapshot: &Snapshot<'_>, pool: &str, revision: Option<&str>) -> bool {
    snapshot.nodes.iter().any(|(_, node)| {
        let from = node.handover.as_ref().and_then(|handover| handover.from.as_deref());
        let has = revision.is_none() || node.revision.as_deref() == revision || from == revision;
        node.pool.as_deref() == Some(pool) && has
    })
}

pub(super) fn is_retained(snapshot: &Snapshot<'_>, set: &DaemonSet) -> bool {
    let annotations = set.object.metadata.annotations.as_ref();
    !snapshot.settings.cleanup && annotations.is_some_and(|all| all.contains_key(RETAINED_ANNOTATION))
}

/// The retained DaemonSet that lets nodes of a pool keep their agents although no object needs
/// them.
fn retained<'a>(snapshot: &Snapshot<'a>, pool: &str) -> Option<&'a DaemonSet> {
    snapshot
        .made
        .iter()
        .copied()
        .map(|(_, set)| set)
        .find(|set| has_pool(set) && pool_of(set) == pool && is_retained(snapshot, set))
}

/// The UID of the ServiceAccount that the pool's agents currently use.
fn account_of<'a>(snapshot: &Snapshot<'a>, pool: &str) -> Option<&'a str> {
    snapshot.made.iter().filter(|(_, set)| has_pool(set) && pool_of(set) == pool).find_map(|(_, set)| {
        let pods = set.object.spec.template.metadata.as_ref()?;
        pods.annotations.as_ref()?.get(ACCOUNT_ANNOTATION).map(String::as_str)
    })
}

/// Whether one of our DaemonSets belongs to a pool.
fn has_pool(set: &DaemonSet) -> bool {
    role(&set.object.metadata) != Some(PodRole::Beside)
}

/// The pool of one of our DaemonSets.
fn pool_of(set: &DaemonSet) -> &str {
    let labels = set.object.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(AGENT_POOL_LABEL)).map(String::as_str).unwrap_or_default()
}

/// The wanted origin of a pool's agents.
fn source(snapshot: &Snapshot<'_>, pool: &str, lead: Option<usize>) -> Source {
    if let Some(lead) = lead {
        let object = &snapshot.objects[lead];
        let spec = &object.written.spec;
        return Source {
            kube_proxy: spec.kube_proxy.clone(),
            object: Some(lead),
            name: object.name.to_owned(),
        };
    }
    let set = retained(snapshot, pool);
    let annotations = set.and_then(|set| set.object.metadata.annotations.as_ref());
    let name = annotations.and_then(|all| all.get(RETAINED_ANNOTATION)).cloned().unwrap_or_default();
    Source { kube_proxy: remembered(set), object: None, name }
}

/// The rollout settings of a pool: those of the oldest object that has it.
pub(super) fn settings_of(snapshot: &Snapshot<'_>, pool: &str) -> Settings {
    let has_it = |object: &&Object<'_>| object.written.spec.pools().iter().any(|own| own.name == pool);
    snapshot.objects.iter().find(has_it).map(|object| object.written.spec.rollout.clone()).unwrap_or_default()
}

/// The parsed pool selectors of one object.
struct Selectors<'a>(Vec<(&'a str, Selector)>);

/// Assigns each node that needs an agent to the first matching pool of the oldest object that needs
/// an agent there. A node with an agent that no longer matches any pool keeps its pool while an
/// agent is needed or the pool is retained.
fn assign<'a>(snapshot: &Snapshot<'a>) -> Vec<Option<(&'a str, Option<usize>)>> {
    let selectors: Vec<Selectors<'a>> = snapshot
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
        snapshot.objects.iter().enumerate().map(|(place, object)| (object.name, place)).collect();
    let as_it_is = |node: usize| {
        let pool = snapshot.nodes[node].1.pool.as_deref()?;
        match snapshot.needing(node).next() {
            Some(first) => Some((pool, places.get(first.name).copied())),
            None => retained(snapshot, pool).map(|_| (pool, None)),
        }
    };
    let pool_of = |node: usize| {
        let matching = snapshot.needing(node).find_map(|object| {
            let place = *places.get(object.name)?;
            let labels = &snapshot.nodes[node].1.labels;
            let found = selectors[place].0.iter().find(|(_, selector)| selector.matches(labels))?;
            Some((found.0, Some(place)))
        });
        matching.or_else(|| as_it_is(node))
    };
    (0..snapshot.nodes.len()).map(pool_of).collect()
}

/// Whether every object that needs these nodes is being deleted with `deletionPolicy: Retain`.
fn is_to_be_retained(snapshot: &Snapshot<'_>, members: &[usize]) -> bool {
    members.iter().all(|node| snapshot.needing(*node).all(|object| object.deletion == Some(Deletion::Retain)))
}
