//! Whether mode Filter accepts the cluster's kube-proxy, asked before any object exists. It knows
//! nothing of nodes and objects. `kubectl isp check` calls it; the plan uses the same functions.

use std::collections::BTreeMap;

use isp_api::Reason;

use super::{NoKubeconfig, Problem, agents};
use crate::cluster::{DaemonSet, Key};
use crate::observe::kube_proxy;

/// Why mode Filter refuses the cluster's kube-proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason that the object's condition would have.
    pub reason: Reason,
    /// The message that the object's condition would have.
    pub message: String,
    /// The ConfigMap that the decision depends on, and in which no kubeconfig was found.
    pub config_map: Option<Key>,
}

/// The kube-proxy that mode Filter would run behind its agents if no object names one.
///
/// `configurations` has the kubeconfig path in each ConfigMap that configures a kube-proxy, by
/// file.
pub fn accepted<'a>(
    sets: &'a BTreeMap<Key, DaemonSet>,
    configurations: &BTreeMap<Key, BTreeMap<String, String>>,
) -> Result<(&'a Key, &'a DaemonSet), Refusal> {
    let found = kube_proxy(sets, None).map_err(Problem::from);
    // The image and the pool do not affect the answer.
    let made = found.and_then(|(key, set)| agents(configurations, key, set, "", "").map(|_| (key, set)));
    made.map_err(|problem| Refusal {
        reason: problem.reason(),
        message: problem.to_string(),
        config_map: match &problem {
            Problem::NoKubeconfig(_, why) => match &**why {
                NoKubeconfig::NotNamed { map, .. } => Some(map.clone()),
                _ => None,
            },
            _ => None,
        },
    })
}
