//! Which Services the agent serves, and what the node may see of them. Pure.
//!
//! A Service is served for an object as [`ObjectView::served`] says, if the object owns it
//! ([`isp_api::claims`]) or lists it in its status. The label alone proves nothing: it is written
//! by everyone who may write Services, and a Service that joins could claim the external IP of
//! another. Objects and their status are written by the administrator and the operator.
//!
//! The status counts because of the way back. An object that is being deleted owns nothing any
//! more, and one that was edited may not target the Service any more. The operator then lists the
//! Service until it has restored it, and the label goes last. Until then kube-proxy ignores the
//! Service.

use std::collections::BTreeMap;
use std::sync::Arc;

use isp_api::IngressSourcePreserve;
use isp_api::claims::{ServiceIdentity, claims};
use isp_api::view::{ObjectView, View};
use isp_dataplane::model::{ServiceName, View as Seen};

use crate::node::view::{EpochView, PreservingObject};

#[cfg(test)]
mod tests;

/// Why a Service is served, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) view: Seen,
    /// The names of the objects that it is served for.
    pub(crate) objects: Vec<Arc<str>>,
}

/// The objects, as far as they decide about Services.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Preserved {
    /// From the oldest to the newest.
    objects: Vec<Preserving>,
}

#[derive(Debug, PartialEq)]
struct Preserving {
    name: Arc<str>,
    view: ObjectView,
    decides: PreservingObject,
}

impl Preserved {
    pub(crate) fn of(current: &EpochView) -> Self {
        let views: BTreeMap<&str, &ObjectView> =
            current.view.objects.iter().map(|view| (view.object.as_str(), view)).collect();
        let preserving = |each: &PreservingObject| {
            let view = views.get(each.object.metadata.name.as_deref()?)?;
            Some(Preserving {
                name: Arc::from(view.object.as_str()),
                view: (*view).clone(),
                decides: each.clone(),
            })
        };
        Self { objects: current.objects.iter().filter_map(preserving).collect() }
    }

    /// Decides about a Service. None if it is served for no object. If it is served for several,
    /// the narrowest view counts.
    pub(crate) fn decide(
        &self,
        service: &ServiceName,
        labels: &BTreeMap<String, String>,
    ) -> Option<Decision> {
        let is_of_interest = |each: &Preserving| each.view.served(labels, true).is_some();
        if !self.objects.iter().any(is_of_interest) {
            return None;
        }
        let owner = self.owner(service, labels);
        let key = (service.namespace.clone(), service.name.clone());
        let mut decision: Option<Decision> = None;
        for (place, object) in self.objects.iter().enumerate() {
            let is_listed = object.decides.listed.contains(&key);
            if owner != Some(place) && !is_listed {
                continue;
            }
            let Some(view) = object.view.served(labels, is_listed).map(seen) else { continue };
            let decision = decision.get_or_insert(Decision { view, objects: Vec::new() });
            decision.view = narrower(decision.view, view);
            decision.objects.push(Arc::clone(&object.name));
        }
        decision
    }

    /// The place of the object that owns the Service.
    fn owner(&self, service: &ServiceName, labels: &BTreeMap<String, String>) -> Option<usize> {
        let objects: Vec<&IngressSourcePreserve> =
            self.objects.iter().map(|object| &object.decides.object).collect();
        let identity = ServiceIdentity { namespace: &service.namespace, name: &service.name, labels };
        let claims = claims(&objects, &[identity]);
        claims.claimed.iter().position(|claimed| !claimed.services.is_empty())
    }
}

fn seen(view: View) -> Seen {
    match view {
        View::Full => Seen::Full,
        View::ClusterOnly => Seen::ClusterOnly,
        View::Hidden => Seen::Hidden,
    }
}

fn narrower(one: Seen, other: Seen) -> Seen {
    match (one, other) {
        (Seen::Hidden, _) | (_, Seen::Hidden) => Seen::Hidden,
        (Seen::ClusterOnly, _) | (_, Seen::ClusterOnly) => Seen::ClusterOnly,
        (Seen::Full, Seen::Full) => Seen::Full,
    }
}
