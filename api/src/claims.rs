//! Who owns a Service: the oldest object that targets it. The plan, the validation and the doctor
//! all decide by this function.
//!
//! An object that is being deleted owns nothing: a newer object takes over as soon as the Service
//! is restored. An invalid selector targets nothing; [`view`](crate::view) reports it.

use std::collections::{BTreeMap, btree_map::Entry};

use crate::{IngressSourcePreserve, preserve::ServiceTarget};

#[cfg(test)]
mod tests;

/// The fields of a Service that ownership depends on.
#[derive(Clone, Copy, Debug)]
pub struct ServiceIdentity<'a> {
    /// The namespace of the Service.
    pub namespace: &'a str,
    /// The name of the Service.
    pub name: &'a str,
    /// The labels of the Service.
    pub labels: &'a BTreeMap<String, String>,
}

/// Namespace and name of a Service.
pub type ServiceKey<'a> = (&'a str, &'a str);

/// The owner of each Service.
#[derive(Debug, Default)]
pub struct Claims<'a> {
    /// What each object owns, in the order of the objects.
    pub claimed: Vec<Claimed<'a>>,
    /// The targets that an older object already owns.
    pub contests: Vec<Contest<'a>>,
}

/// The Services that one object targets.
#[derive(Debug, Default)]
pub struct Claimed<'a> {
    /// The Services that it owns, as indices into the given Services.
    pub services: Vec<usize>,
    /// The Services that it names and that do not exist.
    pub missing: Vec<ServiceKey<'a>>,
}

/// A Service that an object targets and an older object owns.
#[derive(Debug)]
pub struct Contest<'a> {
    /// The index of the newer object.
    pub object: usize,
    /// The index of the entry in its `spec.services`.
    pub entry: usize,
    /// The index of the older object.
    pub owner: usize,
    /// The Service.
    pub service: ServiceKey<'a>,
}

/// Decides who owns each Service. The objects are sorted from the oldest to the newest. A Service
/// that an object names is owned even if it does not exist, so that two objects cannot wait for it.
pub fn claims<'a>(objects: &[&'a IngressSourcePreserve], services: &[ServiceIdentity<'a>]) -> Claims<'a> {
    let existing: BTreeMap<ServiceKey<'a>, usize> = services
        .iter()
        .enumerate()
        .map(|(index, service)| ((service.namespace, service.name), index))
        .collect();
    let mut owners: BTreeMap<ServiceKey<'a>, usize> = BTreeMap::new();
    let mut claims = Claims { claimed: Vec::with_capacity(objects.len()), contests: Vec::new() };
    for (object, written) in objects.iter().enumerate() {
        let mut claimed = Claimed::default();
        let standing = written.metadata.deletion_timestamp.is_none();
        for (entry, target) in written.spec.services.iter().enumerate().filter(|_| standing) {
            for service in targeted(target, services, &existing) {
                let index = existing.get(&service);
                if index.is_none() && !claimed.missing.contains(&service) {
                    claimed.missing.push(service);
                }
                match owners.entry(service) {
                    Entry::Vacant(free) => {
                        free.insert(object);
                        claimed.services.extend(index);
                    }
                    Entry::Occupied(taken) if *taken.get() == object => {}
                    Entry::Occupied(taken) => {
                        let owner = *taken.get();
                        claims.contests.push(Contest { object, entry, owner, service });
                    }
                }
            }
        }
        claims.claimed.push(claimed);
    }
    claims
}

/// The Services that an entry of `spec.services` targets: the named one, or those that its selector
/// matches.
fn targeted<'a>(
    target: &'a ServiceTarget,
    services: &[ServiceIdentity<'a>],
    existing: &BTreeMap<ServiceKey<'a>, usize>,
) -> Vec<ServiceKey<'a>> {
    if let Some(name) = &target.name {
        return vec![(&target.namespace, name)];
    }
    let of_namespace = existing.range((target.namespace.as_str(), "")..);
    let of_namespace = of_namespace.take_while(|((namespace, _), _)| *namespace == target.namespace);
    of_namespace
        .filter(|((namespace, name), index)| {
            target.matches(namespace, name, services[**index].labels).unwrap_or(false)
        })
        .map(|(key, _)| *key)
        .collect()
}
