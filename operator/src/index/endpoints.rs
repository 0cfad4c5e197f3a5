//! Ready endpoints by Service, from EndpointSlices. A Service has one slice or more, and a slice says whose it is.

use std::collections::BTreeMap;

use isp_plan::{Key, observe};
use isp_runtime::readiness::Pending;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::runtime::watcher::Event;

use super::News;

/// Of each Service, by slice: how many ready endpoints on which node.
type ByService = BTreeMap<Key, BTreeMap<String, BTreeMap<String, u32>>>;

/// How far the reading of slices has come.
pub(super) struct Endpoints {
    pending: Option<Pending>,
    whole: bool,
    coming: ByService,
}

impl Endpoints {
    pub(super) fn new(pending: Option<Pending>) -> Self {
        Self { pending, whole: false, coming: ByService::new() }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    pub(super) fn take(&mut self, known: &mut ByService, event: Event<EndpointSlice>) -> News {
        match event {
            Event::Init => {
                self.coming.clear();
                News::Nothing
            }
            Event::InitApply(slice) => {
                if let Some((service, ready)) = observe::endpoint_slice(&slice) {
                    self.coming.entry(service).or_default().insert(slice.name_any(), ready);
                }
                News::Nothing
            }
            Event::InitDone => {
                *known = std::mem::take(&mut self.coming);
                self.whole = true;
                self.pending = None;
                News::Facts
            }
            Event::Apply(slice) => match observe::endpoint_slice(&slice) {
                Some((service, ready)) => set(known, service, &slice, ready),
                None => remove(known, &slice),
            },
            Event::Delete(slice) => remove(known, &slice),
        }
    }
}

fn set(known: &mut ByService, service: Key, slice: &EndpointSlice, ready: BTreeMap<String, u32>) -> News {
    let name = slice.name_any();
    if let Some(before) = known.get_mut(&service).and_then(|slices| slices.get_mut(&name)) {
        if *before == ready {
            return News::Nothing;
        }
        *before = ready;
        return News::Facts;
    }
    // It is new, or was another Service's before.
    remove(known, slice);
    known.entry(service).or_default().insert(name, ready);
    News::Facts
}

fn remove(known: &mut ByService, slice: &EndpointSlice) -> News {
    let (namespace, name) = (slice.namespace().unwrap_or_default(), slice.name_any());
    let mut in_namespace = known
        .range_mut(Key::new(&*namespace, "")..)
        .take_while(|(service, _)| service.namespace == namespace);
    let Some((service, slices)) = in_namespace.find(|(_, slices)| slices.contains_key(&name)) else {
        return News::Nothing;
    };
    slices.remove(&name);
    if slices.is_empty() {
        let service = service.clone();
        known.remove(&service);
    }
    News::Facts
}
