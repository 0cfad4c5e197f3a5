//! The pods behind a Service, found by an index instead of comparing all Services with all pods.

use std::collections::HashMap;
use std::net::IpAddr;

use isp_plan::Key;

use super::cluster::{Cluster, Pod};

/// A namespace, a label and its value.
type Labelled<'a> = (&'a str, &'a str, &'a str);
type Found<'a> = (&'a Key, &'a Pod);

/// Pods by namespace and one label, and by namespace and address.
pub(crate) struct PodIndex<'a> {
    cluster: &'a Cluster,
    by_label: HashMap<Labelled<'a>, Vec<Found<'a>>>,
    by_address: HashMap<(&'a str, IpAddr), Found<'a>>,
}

impl<'a> PodIndex<'a> {
    pub(crate) fn of_cluster(cluster: &'a Cluster) -> Self {
        let mut index = Self { cluster, by_label: HashMap::new(), by_address: HashMap::new() };
        for (key, pod) in &cluster.pods {
            for (label, value) in &pod.labels {
                index.by_label.entry((&key.namespace, label, value)).or_default().push((key, pod));
            }
            for address in &pod.addresses {
                index.by_address.insert((&key.namespace, *address), (key, pod));
            }
        }
        index
    }

    /// The pods behind a Service: those that it selects, or, without a selector, those that have
    /// the addresses of its endpoints.
    pub(crate) fn of(&self, service: &Key) -> Vec<Found<'a>> {
        let Some((service, facts)) = self.cluster.services.get_key_value(service) else { return Vec::new() };
        let namespace = service.namespace.as_str();
        let Some(selector) = facts.spec.selector.as_ref().filter(|selector| !selector.is_empty()) else {
            let addresses = self.cluster.backends.get(service).into_iter().flatten();
            return addresses
                .filter_map(|address| self.by_address.get(&(namespace, *address)).copied())
                .collect();
        };
        let lists = selector
            .iter()
            .map(|(label, value)| self.by_label.get(&(namespace, label.as_str(), value.as_str())));
        // The label that the fewest pods have.
        let shortest = lists.map(|list| list.map_or(&[][..], Vec::as_slice)).min_by_key(|list| list.len());
        let candidates = shortest.unwrap_or_default().iter().copied();
        candidates.filter(|(_, pod)| pod.has(selector)).collect()
    }
}
