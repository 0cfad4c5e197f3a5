//! What is wrong with a set of objects although each of them alone is right.
//!
//! The schema and its CEL rules see one object at a time. Here all of them lie side by side, with the Services and nodes that
//! their selectors meet. The webhook refuses an object for what is found, the operator reports it in the condition
//! `Conflict`. In every conflict the older object stands and the newer one is the one that is told.
//!
//! A selector that cannot be read claims nothing here; [`view`](crate::view) reports it.

use std::{collections::BTreeMap, fmt};

use kube::ResourceExt;

use crate::{
    IngressSourcePreserve,
    age::by_age,
    preserve::{KubeProxyRef, Pool, ServiceLabel},
    reason::Reason,
};

mod pools;
mod services;

#[cfg(test)]
mod tests;

/// The part of a Service by which objects claim it.
#[derive(Clone, Copy, Debug)]
pub struct ServiceIdentity<'a> {
    /// The namespace of the Service.
    pub namespace: &'a str,
    /// The name of the Service.
    pub name: &'a str,
    /// The labels of the Service.
    pub labels: &'a BTreeMap<String, String>,
}

/// The part of a node by which pools select it.
#[derive(Clone, Copy, Debug)]
pub struct NodeIdentity<'a> {
    /// The name of the node.
    pub name: &'a str,
    /// The labels of the node.
    pub labels: &'a BTreeMap<String, String>,
}

/// Two objects that cannot both have their way. Its text names the field, the value, the other object and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The newer object, which has to give way.
    pub object: String,
    /// The older object, which stands.
    pub older: String,
    /// The field of the newer object that the conflict is about.
    pub field: String,
    /// What clashes.
    pub clash: Clash,
}

/// What clashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clash {
    /// Both objects claim the same Services.
    Service {
        /// The first of the Services, as `namespace/name`.
        service: String,
        /// How many more there are.
        more: usize,
    },
    /// Both objects mark their Services with the same label.
    ServiceLabel(ServiceLabel),
    /// Both objects have a pool of this name, but not the same pool.
    PoolDiffers {
        /// The name of the pool.
        pool: String,
        /// What differs.
        difference: PoolDifference,
    },
    /// A node lies in pools of both objects, and they want different things there.
    PoolOverlaps {
        /// The pool of the newer object.
        pool: String,
        /// The pool of the older object.
        other: String,
        /// The first of the nodes.
        node: String,
        /// What differs.
        difference: PoolDifference,
    },
}

/// In what two pools differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolDifference {
    /// They select other nodes.
    Selector,
    /// Their agents work in other ways.
    Mode,
    /// Their objects name different kube-proxies.
    KubeProxy,
}

impl fmt::Display for PoolDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Selector => "selector",
            Self::Mode => "mode",
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
                "{label} already marks the Services of {older}, and no node could tell them apart; give this one another value"
            ),
            Clash::PoolDiffers { pool, difference } => write!(
                f,
                "pool {pool:?} has another {difference} in {older}; make them equal or choose another name"
            ),
            Clash::PoolOverlaps { pool, other, node, difference } => write!(
                f,
                "pool {pool:?} and pool {other:?} of {older} both select node {node}, but with another {difference}; \
                 make the settings equal or the selectors disjoint"
            ),
        }
    }
}

impl Conflict {
    /// The reason to give in the condition `Conflict`.
    pub fn reason(&self) -> Reason {
        match self.clash {
            Clash::Service { .. } => Reason::ServiceClaimed,
            Clash::ServiceLabel(_) => Reason::ServiceLabelClaimed,
            Clash::PoolDiffers { .. } => Reason::PoolDiffers,
            Clash::PoolOverlaps { .. } => Reason::PoolOverlaps,
        }
    }
}

/// All conflicts among the objects, from the oldest object to the newest. Services named outright clash even while they do not
/// exist; selected ones, and pools that overlap, clash in the Services and nodes given here.
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
