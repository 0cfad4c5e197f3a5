//! The Services that the agent has to serve, with their slices, folded from the watches. Pure.
//!
//! A Service counts only once the slices of its name have been listed: a Service without known
//! endpoints would be rejected although kube-proxy still serves it. While a watch starts again with
//! another selector, the objects of the previous one stay until its list is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use isp_api::names::SERVICE_LABEL;
use isp_api::preserve::ServiceLabel;
use isp_api::view::depends_on_beside;
use isp_client::{Change, Listing};
use isp_dataplane::model::{Service, ServiceName};
use isp_intake::services::{self as intake, KnownService, KnownSlice};
use k8s_openapi::api::core::v1::Service as ServiceObject;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::runtime::watcher::Event;

#[cfg(test)]
mod tests;

/// Namespace and name of a slice.
type SliceName = (String, String);

/// The Services and slices of the current watches.
#[derive(Debug, Default)]
pub(crate) struct Known {
    services: BTreeMap<Arc<ServiceName>, KnownService>,
    slices: BTreeMap<ServiceName, BTreeMap<String, KnownSlice>>,
    /// Where each slice belongs: its Service may change.
    owners: BTreeMap<SliceName, ServiceName>,
    /// The Services of each watch, by the label key of its selector. A Service may be in several.
    watched: BTreeMap<String, BTreeSet<ServiceName>>,
    /// The names of Services whose slices have been listed.
    covered: Option<Covered>,
    /// The number of Services whose slices have not been listed.
    uncovered: usize,
    /// The names of the Services, in all namespaces, and how many have each.
    names: BTreeMap<String, usize>,
    /// Counts the changes of these names.
    names_version: u64,
    changed: BTreeSet<Arc<ServiceName>>,
}

/// Which Services the watch of slices covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Covered {
    /// Those with these names, in any namespace.
    Named(BTreeSet<String>),
    /// All Services.
    All,
}

impl Covered {
    fn contains(&self, name: &str) -> bool {
        match self {
            Self::Named(names) => names.contains(name),
            Self::All => true,
        }
    }
}

/// The Services that the agent has to serve, by their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Those with one of these labels.
    Labelled(BTreeSet<ServiceLabel>),
    /// Every Service of the cluster.
    #[default]
    All,
}

impl Wanted {
    /// The same in parts, one for each label key: a selector of the API server cannot say "or".
    pub(crate) fn parts(&self) -> Vec<Part> {
        let Self::Labelled(labels) = self else { return vec![Part::default()] };
        let mut values: BTreeMap<&str, BTreeSet<String>> = [(SERVICE_LABEL, BTreeSet::new())].into();
        for label in labels {
            values.entry(&label.key).or_default().insert(label.value.clone());
        }
        values.into_iter().map(|(key, values)| Part { key: key.to_owned(), values }).collect()
    }
}

/// The Services of one watch: those with a label of this key and one of these values, and those of
/// this key that depend on the agent. With an empty key, every Service.
///
/// A Service may depend on the agent although its object is gone, if somebody removed the
/// finalizer. The operator then gives it back to kube-proxies. It removes its own label last, so
/// the watch of that label is for any value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    key: String,
    values: BTreeSet<String>,
}

impl Part {
    fn includes(&self, object: &ServiceObject) -> bool {
        let labels = object.labels();
        self.key.is_empty()
            || labels.get(&self.key).is_some_and(|value| {
                self.values.contains(value) || depends_on_beside(labels, object.annotations())
            })
    }

    /// The label key; empty for every Service.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The API server's selector.
    pub(crate) fn selector(&self) -> Option<String> {
        let values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        match self.key.as_str() {
            "" => None,
            SERVICE_LABEL => Some(SERVICE_LABEL.to_owned()),
            key => Some(format!("{key} in ({})", values.join(","))),
        }
    }
}

/// The events of one watch of Services, in progress.
#[derive(Debug)]
pub(crate) struct ServiceListing {
    listing: Listing<(ServiceName, Option<KnownService>)>,
    part: Part,
}

impl ServiceListing {
    /// Of a watch of these Services.
    pub(crate) fn new(part: Part) -> Self {
        Self { listing: Listing::default(), part }
    }

    /// The Services of this watch.
    pub(crate) fn part(&self) -> &Part {
        &self.part
    }

    /// Whether a list has been completed.
    pub(crate) fn is_complete(&self) -> bool {
        self.listing.is_complete()
    }
}

/// The events of one watch of slices, in progress.
#[derive(Debug)]
pub(crate) struct SliceListing {
    listing: Listing<(SliceName, Option<(ServiceName, KnownSlice)>)>,
    covers: Covered,
}

impl SliceListing {
    pub(crate) fn new(covers: Covered) -> Self {
        Self { listing: Listing::default(), covers }
    }
}

fn name_of(object: &impl ResourceExt) -> ServiceName {
    ServiceName { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
}

impl Known {
    /// Folds in an event of the watch of Services.
    pub(crate) fn fold_service(&mut self, listing: &mut ServiceListing, event: Event<ServiceObject>) {
        let part = &listing.part;
        let item = |object: ServiceObject| {
            let is_wanted = part.includes(&object);
            (name_of(&object), intake::service(&object).filter(|_| is_wanted))
        };
        match listing.listing.fold(event, item) {
            None => {}
            Some(Change::Applied((name, Some(service)))) => self.put_service(part.key(), name, service),
            Some(Change::Applied((name, None)) | Change::Deleted((name, _))) => {
                self.unwatch_service(part.key(), &name);
            }
            Some(Change::Listed(all)) => {
                let listed: BTreeMap<_, _> =
                    all.into_iter().filter_map(|(name, service)| Some((name, service?))).collect();
                let watched = self.watched.entry(part.key().to_owned()).or_default();
                let gone = watched.iter().filter(|name| !listed.contains_key(*name));
                for name in gone.cloned().collect::<Vec<_>>() {
                    self.unwatch_service(part.key(), &name);
                }
                for (name, service) in listed {
                    self.put_service(part.key(), name, service);
                }
            }
        }
    }

    /// Folds in an event of the watch of slices.
    pub(crate) fn fold_slice(&mut self, listing: &mut SliceListing, event: Event<EndpointSlice>) {
        let item = |object: EndpointSlice| {
            ((object.namespace().unwrap_or_default(), object.name_any()), intake::slice(&object))
        };
        match listing.listing.fold(event, item) {
            None => {}
            Some(Change::Applied((name, Some((service, slice))))) => self.put_slice(name, service, slice),
            Some(Change::Applied((name, None)) | Change::Deleted((name, _))) => self.remove_slice(&name),
            Some(Change::Listed(all)) => {
                let listed: BTreeMap<_, _> =
                    all.into_iter().filter_map(|(name, slice)| Some((name, slice?))).collect();
                let gone = self.owners.keys().filter(|name| !listed.contains_key(*name));
                for name in gone.cloned().collect::<Vec<_>>() {
                    self.remove_slice(&name);
                }
                for (name, (service, slice)) in listed {
                    self.put_slice(name, service, slice);
                }
                self.cover(&listing.covers);
            }
        }
    }

    /// Forgets the Services of the watches with other label keys.
    pub(crate) fn keep_watches(&mut self, keys: &BTreeSet<&str>) {
        let ended = self.watched.keys().filter(|key| !keys.contains(key.as_str()));
        for key in ended.cloned().collect::<Vec<_>>() {
            for name in self.watched.remove(&key).unwrap_or_default() {
                self.unwatch_service(&key, &name);
            }
        }
    }

    /// The last report counts: all watches report the same Service sooner or later.
    fn put_service(&mut self, watch: &str, name: ServiceName, service: KnownService) {
        match self.watched.get_mut(watch) {
            Some(watched) => drop(watched.insert(name.clone())),
            None => drop(self.watched.insert(watch.to_owned(), [name.clone()].into())),
        }
        let name =
            self.services.get_key_value(&name).map_or_else(|| Arc::new(name), |(name, _)| name.clone());
        if self.services.get(&name) != Some(&service) {
            if self.services.insert(name.clone(), service).is_none() {
                self.count(&name);
            }
            self.changed.insert(name);
        }
    }

    /// The Service is gone once no watch has it.
    fn unwatch_service(&mut self, watch: &str, name: &ServiceName) {
        if let Some(watched) = self.watched.get_mut(watch) {
            watched.remove(name);
        }
        if self.watched.values().any(|watched| watched.contains(name)) {
            return;
        }
        if let Some((name, _)) = self.services.remove_entry(name) {
            self.discount(&name);
            self.changed.insert(name);
        }
    }

    fn count(&mut self, name: &ServiceName) {
        self.uncovered += usize::from(!self.counts(name));
        let of_name = self.names.entry(name.name.clone()).or_default();
        *of_name += 1;
        self.names_version += u64::from(*of_name == 1);
    }

    fn discount(&mut self, name: &ServiceName) {
        self.uncovered -= usize::from(!self.counts(name));
        if let Some(of_name) = self.names.get_mut(&name.name) {
            *of_name -= 1;
            if *of_name == 0 {
                self.names.remove(&name.name);
                self.names_version += 1;
            }
        }
    }

    fn put_slice(&mut self, name: SliceName, service: ServiceName, slice: KnownSlice) {
        if self.owners.get(&name).is_some_and(|owner| *owner != service) {
            self.remove_slice(&name);
        }
        let of_service = self.slices.entry(service.clone()).or_default();
        if of_service.get(&name.1) != Some(&slice) {
            of_service.insert(name.1.clone(), slice);
            self.touch(&service);
        }
        self.owners.insert(name, service);
    }

    fn remove_slice(&mut self, name: &SliceName) {
        let Some(service) = self.owners.remove(name) else { return };
        if let Some(of_service) = self.slices.get_mut(&service) {
            of_service.remove(&name.1);
            if of_service.is_empty() {
                self.slices.remove(&service);
            }
        }
        self.touch(&service);
    }

    fn touch(&mut self, service: &ServiceName) {
        if let Some((name, _)) = self.services.get_key_value(service) {
            self.changed.insert(name.clone());
        }
    }

    /// A list of slices is complete: Services that it covers for the first time count from now on.
    fn cover(&mut self, covers: &Covered) {
        let before = self.covered.replace(covers.clone());
        let is_new = |name: &Arc<ServiceName>| {
            covers.contains(&name.name) != before.as_ref().is_some_and(|before| before.contains(&name.name))
        };
        self.changed.extend(self.services.keys().filter(|name| is_new(name)).cloned());
        self.uncovered = self.services.keys().filter(|name| !covers.contains(&name.name)).count();
    }

    /// Whether the slices of all Services are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.uncovered == 0
    }

    /// The names of the Services whose slices have to be watched.
    pub(crate) fn names(&self) -> impl ExactSizeIterator<Item = &String> {
        self.names.keys()
    }

    /// A number that changes with the names.
    pub(crate) fn names_version(&self) -> u64 {
        self.names_version
    }

    /// Services that have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<Arc<ServiceName>> {
        std::mem::take(&mut self.changed)
    }

    /// All Services that count.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ServiceName>> {
        self.services.keys().filter(|name| self.counts(name))
    }

    fn counts(&self, name: &ServiceName) -> bool {
        self.covered.as_ref().is_some_and(|covered| covered.contains(&name.name))
    }

    /// The Service without its endpoints, if it exists and counts.
    pub(crate) fn service(&self, name: &ServiceName) -> Option<&KnownService> {
        self.services.get(name).filter(|_| self.counts(name))
    }

    /// The Service with its endpoints, if it exists and counts.
    pub(crate) fn with_endpoints(&self, name: &ServiceName) -> Option<Service> {
        let slices = self.slices.get(name).into_iter().flat_map(BTreeMap::values);
        Some(self.service(name)?.with_endpoints(slices))
    }
}
