//! The agents' ServiceAccount and its RBAC. The operator manages them instead of the release, so
//! that their lifetime follows the agents': created before the first pool's DaemonSet, kept while
//! an agent's DaemonSet or pod exists, deleted after the last.
//!
//! Objects of the same name that the operator did not create are neither used nor changed. Objects
//! that an earlier release installed are adopted: their content is the same, and the ServiceAccount
//! is bound to the agents' role.

use std::collections::{BTreeMap, BTreeSet};

use isp_api::Reason;
use isp_api::names::{AGENT_NAME, AGENT_ROLE};
use serde_json::{Value, json};
use thiserror::Error;

use super::Plan;
use super::pools::{covers, is_retained};
use super::snapshot::Snapshot;
use crate::action::Action;
use crate::build::account;
use crate::cluster::{Cluster, Key, PodRole, Written};
use crate::own::{OwnKind, content};

/// The kinds of the agents' account and its rights.
pub(super) const KINDS: [OwnKind; 5] = [
    OwnKind::Account,
    OwnKind::Role,
    OwnKind::RoleBinding,
    OwnKind::AgentPolicy,
    OwnKind::AgentPolicyBinding,
];

/// Why no agent can be created: its ServiceAccount or RBAC is not in place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Problem {
    #[error(
        "{0} exists and does not belong to the operator, so agents do not use it. Delete it if it is unused, or recreate it under \
         another name; the operator then creates its own"
    )]
    Taken(String),
    #[error("{0} does not exist yet: the operator creates it before the first agent")]
    Missing(String),
}

impl Problem {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Taken(_) => Reason::AccountTaken,
            Self::Missing(_) => Reason::AccountMissing,
        }
    }
}

/// The state of a required object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Missing,
    /// Being deleted; can be recreated only afterwards.
    Leaving,
    /// Installed by an earlier release.
    Former,
    Outdated,
    Current,
    Taken,
}

/// The objects that agents need, for all namespaces with agents.
pub(super) struct Accounts(BTreeMap<(OwnKind, Key), (Value, Standing)>);

impl Accounts {
    /// For the namespaces that have agents, plus those in `soon`.
    pub(super) fn new(snapshot: &Snapshot<'_>, soon: impl Iterator<Item = String>) -> Self {
        let namespaces: BTreeSet<String> = soon.chain(inhabited(snapshot)).collect();
        let wanted = account::wanted(&namespaces, &snapshot.settings.agent_pull_secrets).into_iter();
        let standing = |((kind, key), object): ((OwnKind, Key), Value)| {
            let standing = stands(snapshot.cluster, kind, &key, &object);
            ((kind, key), (object, standing))
        };
        Self(wanted.map(standing).collect())
    }

    /// The UID of the ServiceAccount in a namespace.
    pub(super) fn uid<'c>(&self, cluster: &'c Cluster, namespace: &str) -> Option<&'c str> {
        let place = (OwnKind::Account, Key::new(namespace, AGENT_NAME));
        let usable = [Standing::Current, Standing::Outdated, Standing::Former];
        self.0.get(&place).filter(|(_, standing)| usable.contains(standing))?;
        cluster.own.get(&place.0)?.get(&place.1).map(|account| account.identity.uid.as_str())
    }

    /// Whether all objects that agents in the namespace need are current.
    pub(super) fn check(&self, namespace: &str) -> Result<(), Problem> {
        let needed = self.0.iter().filter(|((_, key), _)| [namespace, ""].contains(&key.namespace.as_str()));
        let named = |kind: OwnKind, key: &Key| {
            let name = if key.namespace.is_empty() { key.name.clone() } else { key.to_string() };
            format!("{} {name}", kind.kind())
        };
        let mut missing = None;
        for ((kind, key), (_, standing)) in needed {
            match standing {
                Standing::Taken => return Err(Problem::Taken(named(*kind, key))),
                Standing::Current => {}
                _ => missing = missing.or_else(|| Some(Problem::Missing(named(*kind, key)))),
            }
        }
        missing.map_or(Ok(()), Err)
    }

    /// Applies the required objects and deletes those that no agent needs any more.
    pub(super) fn plan(&self, snapshot: &Snapshot<'_>, plan: &mut Plan) {
        // Never grant rights to a foreign ServiceAccount. One from an earlier release is recognised
        // by its binding, so the binding must not change before the account is adopted.
        let is_account = |kind: &OwnKind| *kind == OwnKind::Account;
        let rights = !self.0.iter().any(|((kind, _), (_, standing))| {
            is_account(kind) && [Standing::Taken, Standing::Former].contains(standing)
        });
        let may = |kind: &OwnKind| rights || is_account(kind);
        for ((kind, key), (object, standing)) in self.0.iter().filter(|((kind, _), _)| may(kind)) {
            if [Standing::Missing, Standing::Outdated, Standing::Former].contains(standing) {
                let (kind, key, object) = (*kind, key.clone(), Box::new(object.clone()));
                plan.actions.push(Action::ApplyOwn { kind, key, object });
            }
        }
        for (kind, key, written) in ours(snapshot.cluster) {
            if !written.deleting && !self.0.contains_key(&(kind, key.clone())) {
                let (key, identity) = (key.clone(), written.identity.clone());
                plan.actions.push(Action::DeleteOwn { kind, key, identity });
            }
        }
    }
}

/// Whether one of these objects is left and no retained pool needs it.
pub(super) fn anything_left(snapshot: &Snapshot<'_>) -> bool {
    ours(snapshot.cluster).next().is_some()
        && !snapshot.made.iter().any(|(_, set)| is_retained(snapshot, set))
}

fn ours(cluster: &Cluster) -> impl Iterator<Item = (OwnKind, &Key, &Written)> {
    let all = KINDS.into_iter().flat_map(|kind| cluster.own(kind).map(move |(key, own)| (kind, key, own)));
    all.filter(|(_, _, written)| written.ours)
}

/// The namespaces with one of our DaemonSets, or with an agent's pod and our ServiceAccount. Pods
/// on nodes that are not ready do not count: they end when the node comes back, with or without the
/// account.
fn inhabited(snapshot: &Snapshot<'_>) -> impl Iterator<Item = String> {
    let sets = snapshot.made.iter().map(|(key, _)| key.namespace.clone());
    let has_account = |namespace: &str| {
        let account = snapshot.cluster.own(OwnKind::Account).find(|(key, _)| key.namespace == namespace);
        account.is_some_and(|(_, account)| account.ours)
    };
    let answers = |node: &str| snapshot.cluster.nodes.get(node).is_some_and(|node| node.ready);
    let pods = snapshot.cluster.pods.iter().filter(move |(key, pod)| {
        matches!(pod.role, Some(PodRole::Agent { .. } | PodRole::Beside))
            && answers(&pod.node)
            && has_account(&key.namespace)
    });
    sets.chain(pods.map(|(key, _)| key.namespace.clone()))
}

fn stands(cluster: &Cluster, kind: OwnKind, key: &Key, wanted: &Value) -> Standing {
    let Some(there) = cluster.own.get(&kind).and_then(|known| known.get(key)) else {
        return Standing::Missing;
    };
    let same = covers(&there.content, &content(wanted.clone()));
    match (there.deleting, there.ours) {
        (true, _) => Standing::Leaving,
        (false, true) if same => Standing::Current,
        (false, true) => Standing::Outdated,
        (false, false) if same && (kind != OwnKind::Account || is_bound(cluster, key)) => Standing::Former,
        (false, false) => Standing::Taken,
    }
}

/// Whether an earlier release bound the ServiceAccount to the agents' role. The account itself does
/// not show what it is for.
fn is_bound(cluster: &Cluster, account: &Key) -> bool {
    let mut bindings = cluster.own(OwnKind::RoleBinding);
    let binding = bindings.find(|(key, binding)| key.name == AGENT_ROLE && !binding.ours);
    let subject = json!({"kind": "ServiceAccount", "namespace": account.namespace, "name": account.name});
    let subjects = binding.and_then(|(_, binding)| binding.content["subjects"].as_array());
    subjects.into_iter().flatten().any(|bound| covers(bound, &subject))
}
