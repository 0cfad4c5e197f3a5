//! Ready endpoints per Service, from EndpointSlices. A Service has one or more slices; each slice
//! names its Service.

use std::collections::BTreeMap;

use isp_client::{Change, Listing};
use isp_plan::{Key, observe};
use isp_runtime::readiness::Pending;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::runtime::watcher::Event;

use super::News;

/// Per Service and slice: the number of ready endpoints per node.
type ByService = BTreeMap<Key, BTreeMap<String, BTreeMap<String, u32>>>;

/// A slice: its namespace, its name, and its Service with the ready endpoints.
type Slice = (String, String, Option<(Key, BTreeMap<String, u32>)>);

/// The progress of the watch of EndpointSlices.
pub(super) struct Endpoints {
    pending: Option<Pending>,
    listing: Listing<Slice>,
}

impl Endpoints {
    pub(super) fn new(pending: Option<Pending>) -> Self {
        Self { pending, listing: Listing::default() }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.listing.is_complete()
    }

    pub(super) fn take(&mut self, known: &mut ByService, event: Event<EndpointSlice>) -> News {
        let slice = |slice: EndpointSlice| {
            (slice.namespace().unwrap_or_default(), slice.name_any(), observe::endpoint_slice(&slice))
        };
        match self.listing.fold(event, slice) {
            None => News::Nothing,
            Some(Change::Listed(slices)) => {
                known.clear();
                for (_, name, of_service) in slices {
                    if let Some((service, ready)) = of_service {
                        known.entry(service).or_default().insert(name, ready);
                    }
                }
                self.pending = None;
                News::Facts
            }
            Some(Change::Applied((_, name, Some((service, ready))))) => set(known, service, name, ready),
            Some(Change::Applied((namespace, name, None)) | Change::Deleted((namespace, name, _))) => {
                remove(known, &namespace, &name)
            }
        }
    }
}

fn set(known: &mut ByService, service: Key, name: String, ready: BTreeMap<String, u32>) -> News {
    if let Some(before) = known.get_mut(&service).and_then(|slices| slices.get_mut(&name)) {
        if *before == ready {
            return News::Nothing;
        }
        *before = ready;
        return News::Facts;
    }
    // The slice is new, or belonged to another Service before.
    remove(known, &service.namespace, &name);
    known.entry(service).or_default().insert(name, ready);
    News::Facts
}

fn remove(known: &mut ByService, namespace: &str, name: &str) -> News {
    let mut in_namespace =
        known.range_mut(Key::new(namespace, "")..).take_while(|(service, _)| service.namespace == namespace);
    let Some((service, slices)) = in_namespace.find(|(_, slices)| slices.contains_key(name)) else {
        return News::Nothing;
    };
    slices.remove(name);
    if slices.is_empty() {
        let service = service.clone();
        known.remove(&service);
    }
    News::Facts
}
