//! Conflicts of pools: a pool has one definition, and a node belongs to one pool.

use std::collections::BTreeMap;

use kube::ResourceExt;

use super::{Clash, Conflict, KubeProxyRef, NodeIdentity, Pool, PoolDifference};
use crate::IngressSourcePreserve;

/// A pool as defined by one object.
struct Claim<'a> {
    object: &'a IngressSourcePreserve,
    /// The field path of the pool in the object.
    field: String,
    pool: Pool<'a>,
}

pub(super) fn conflicts(objects: &[&IngressSourcePreserve], nodes: &[NodeIdentity<'_>]) -> Vec<Conflict> {
    let mut found = Vec::new();
    let mut standing: Vec<Claim<'_>> = Vec::new();
    for object in objects {
        // Pools of the same object do not conflict: a node belongs to the first that matches.
        let mut accepted = Vec::new();
        for claim in claims(object) {
            match standing.iter().find_map(|older| clash(older, &claim, nodes)) {
                Some(conflict) => found.push(conflict),
                None => accepted.push(claim),
            }
        }
        standing.extend(accepted);
    }
    found
}

fn claims(object: &IngressSourcePreserve) -> impl Iterator<Item = Claim<'_>> {
    let listed = !object.spec.node_pools.is_empty();
    object.spec.pools().into_iter().enumerate().map(move |(index, pool)| Claim {
        object,
        field: if listed { format!("spec.nodePools[{index}]") } else { "spec.nodePools".to_owned() },
        pool,
    })
}

fn clash(older: &Claim<'_>, newer: &Claim<'_>, nodes: &[NodeIdentity<'_>]) -> Option<Conflict> {
    let settings = settings_difference(older, newer);
    let clash = if older.pool.name == newer.pool.name {
        let selector = (older.pool.selector != newer.pool.selector).then_some(PoolDifference::Selector);
        Clash::PoolDiffers { pool: newer.pool.name.to_owned(), difference: selector.or(settings)? }
    } else {
        // Pools with equal settings may overlap: a node gets the same agent from either.
        let difference = settings?;
        let in_both = |labels: &BTreeMap<String, String>| {
            older.pool.contains(labels) == Ok(true) && newer.pool.contains(labels) == Ok(true)
        };
        Clash::PoolOverlaps {
            pool: newer.pool.name.to_owned(),
            other: older.pool.name.to_owned(),
            node: nodes.iter().find(|node| in_both(node.labels))?.name.to_owned(),
            difference,
        }
    };
    Some(Conflict {
        object: newer.object.name_any(),
        older: older.object.name_any(),
        field: newer.field.clone(),
        clash,
    })
}

fn settings_difference(a: &Claim<'_>, b: &Claim<'_>) -> Option<PoolDifference> {
    // If unset, kube-proxy is autodetected. The result is not known here, and is most likely the
    // named one.
    let differ =
        |a: &Option<KubeProxyRef>, b: &Option<KubeProxyRef>| matches!((a, b), (Some(a), Some(b)) if a != b);
    differ(&a.object.spec.kube_proxy, &b.object.spec.kube_proxy).then_some(PoolDifference::KubeProxy)
}
