//! Conflicts between objects that are each valid.
//!
//! The schema and its CEL rules see one object at a time. This module compares all objects,
//! together with the Services and nodes that their selectors match. The webhook rejects an object
//! with a conflict; the operator reports it in the condition `Conflict`. In every conflict the
//! older object wins, and the conflict is reported on the newer one.
//!
//! [`claims`](crate::claims) decides who owns a Service.

use std::{collections::BTreeMap, fmt};

use kube::ResourceExt;

use crate::{
    IngressSourcePreserve,
    age::by_age,
    claims::ServiceIdentity,
    preserve::{KubeProxyRef, Pool, ServiceLabel},
    reason::Reason,
};

mod pools;
mod services;

#[cfg(test)]
mod tests;

/// The fields of a node that pool selectors depend on.
#[derive(Clone, Copy, Debug)]
pub struct NodeIdentity<'a> {
    /// The name of the node.
    pub name: &'a str,
    /// The labels of the node.
    pub labels: &'a BTreeMap<String, String>,
}

/// A conflict between two objects. Its message names the field, the value, the other object and a
/// remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The newer object, which yields.
    pub object: String,
    /// The older object, which wins.
    pub older: String,
    /// The field of the newer object that conflicts.
    pub field: String,
    /// The kind of conflict.
    pub clash: Clash,
}

/// The kind of a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clash {
    /// Both objects claim the same Services.
    Service {
        /// The first of the Services, as `namespace/name`.
        service: String,
        /// The number of further Services.
        more: usize,
    },
    /// Both objects use the same label for their Services.
    ServiceLabel(ServiceLabel),
    /// Both objects have a pool of this name with different settings.
    PoolDiffers {
        /// The name of the pool.
        pool: String,
        /// What differs.
        difference: PoolDifference,
    },
    /// A node is in pools of both objects that have different settings.
    PoolOverlaps {
        /// The pool of the newer object.
        pool: String,
        /// The pool of the older object.
        other: String,
        /// The first such node.
        node: String,
        /// What differs.
        difference: PoolDifference,
    },
}

/// The setting in which two pools differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolDifference {
    /// Their node selectors.
    Selector,
    /// The kube-proxies that their objects name.
    KubeProxy,
}

impl fmt::Display for PoolDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Selector => "selector",
            Self::KubeProxy => "spec.kubeProxy",
        })
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let older = format!("the older IngressSourcePreserve {}", self.older);
        write!(f, "{}: ", self.field)?;
        match &self.clash {
            Clash::Service { service, more } => {
                let more = if *more == 0 { String::new() } else { format!(" (and {more} more)") };
                write!(f, "Service {service}{more} already belongs to {older}; remove it from one of the two")
            }
            Clash::ServiceLabel(label) => write!(
                f,
                "{label} already marks the Services of {older}, and nodes could not distinguish them; give this one another value"
            ),
            Clash::PoolDiffers { pool, difference } => write!(
                f,
                "pool {pool:?} has a different {difference} in {older}; make them equal or choose another name"
            ),
            Clash::PoolOverlaps { pool, other, node, difference } => write!(
                f,
                "pool {pool:?} and pool {other:?} of {older} both select node {node}, but with a different {difference}; \
                 make the settings equal or the selectors disjoint"
            ),
        }
    }
}

impl Conflict {
    /// The reason for the condition `Conflict`.
    pub fn reason(&self) -> Reason {
        match self.clash {
            Clash::Service { .. } => Reason::ServiceClaimed,
            Clash::ServiceLabel(_) => Reason::ServiceLabelClaimed,
            Clash::PoolDiffers { .. } => Reason::PoolDiffers,
            Clash::PoolOverlaps { .. } => Reason::PoolOverlaps,
        }
    }
}

/// All conflicts, sorted from the oldest object to the newest. Services targeted by name conflict
/// even if they do not exist. Selected Services and overlapping pools conflict only in the given
/// Services and nodes.
pub fn conflicts<'a>(
    objects: impl IntoIterator<Item = &'a IngressSourcePreserve>,
    services: &[ServiceIdentity<'_>],
    nodes: &[NodeIdentity<'_>],
) -> Vec<Conflict> {
    let objects = by_age(objects);
    let mut found = services::conflicts(&objects, services);
    found.extend(labels(&objects));
    found.extend(pools::conflicts(&objects, nodes));
    let age: BTreeMap<_, _> =
        objects.iter().enumerate().map(|(age, object)| (object.name_any(), age)).collect();
    found.sort_by_key(|conflict| age.get(&conflict.object).copied());
    found
}

fn labels(objects: &[&IngressSourcePreserve]) -> Vec<Conflict> {
    let mut owners: BTreeMap<ServiceLabel, String> = BTreeMap::new();
    let mut found = Vec::new();
    for object in objects {
        let label = object.service_label();
        if let Some(older) = owners.get(&label) {
            found.push(Conflict {
                object: object.name_any(),
                older: older.clone(),
                field: "spec.serviceLabel".to_owned(),
                clash: Clash::ServiceLabel(label),
            });
        } else {
            owners.insert(label, object.name_any());
        }
    }
    found
}
