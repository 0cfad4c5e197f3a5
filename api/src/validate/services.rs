//! Conflicts of Services: a Service belongs to one object.

use std::collections::BTreeMap;

use kube::ResourceExt;

use super::{Clash, Conflict, ServiceIdentity};
use crate::{IngressSourcePreserve, preserve::ServiceTarget};

type ServiceKey<'a> = (&'a str, &'a str);

/// One conflict per entry and older object, however many Services they share.
pub(super) fn conflicts(
    objects: &[&IngressSourcePreserve],
    services: &[ServiceIdentity<'_>],
) -> Vec<Conflict> {
    let mut by_namespace: BTreeMap<&str, Vec<&ServiceIdentity<'_>>> = BTreeMap::new();
    for service in services {
        by_namespace.entry(service.namespace).or_default().push(service);
    }

    let mut owners: BTreeMap<ServiceKey<'_>, &IngressSourcePreserve> = BTreeMap::new();
    let mut found = Vec::new();
    for object in objects {
        for (index, target) in object.spec.services.iter().enumerate() {
            let candidates = by_namespace.get(target.namespace.as_str()).map_or(&[][..], Vec::as_slice);
            let mut shared: BTreeMap<String, Vec<ServiceKey<'_>>> = BTreeMap::new();
            for service in claimed(target, candidates) {
                let owner = *owners.entry(service).or_insert(object);
                if !std::ptr::eq(owner, *object) {
                    shared.entry(owner.name_any()).or_default().push(service);
                }
            }
            found.extend(shared.into_iter().filter_map(|(older, services)| {
                let (namespace, name) = services.first()?;
                Some(Conflict {
                    object: object.name_any(),
                    older,
                    field: format!("spec.services[{index}]"),
                    clash: Clash::Service {
                        service: format!("{namespace}/{name}"),
                        more: services.len() - 1,
                    },
                })
            }));
        }
    }
    found
}

fn claimed<'a>(target: &'a ServiceTarget, candidates: &[&ServiceIdentity<'a>]) -> Vec<ServiceKey<'a>> {
    if let Some(name) = &target.name {
        return vec![(&target.namespace, name)];
    }
    candidates
        .iter()
        .filter(|service| target.matches(service.namespace, service.name, service.labels).unwrap_or(false))
        .map(|service| (service.namespace, service.name))
        .collect()
}
