//! Conflicts of Services: a Service belongs to one object.

use kube::ResourceExt;

use super::{Clash, Conflict};
use crate::{
    IngressSourcePreserve,
    claims::{Contest, ServiceIdentity, claims},
};

/// One conflict per entry and older object, however many Services they share.
pub(super) fn conflicts(
    objects: &[&IngressSourcePreserve],
    services: &[ServiceIdentity<'_>],
) -> Vec<Conflict> {
    let mut contests = claims(objects, services).contests;
    let group = |contest: &Contest<'_>| (contest.object, contest.entry, contest.owner);
    contests.sort_by_key(|contest| (group(contest), contest.service));
    let of_one_entry = contests.chunk_by(|one, other| group(one) == group(other));
    let conflict = |shared: &[Contest<'_>]| {
        let (first, more) = shared.split_first()?;
        let (namespace, name) = first.service;
        Some(Conflict {
            object: objects[first.object].name_any(),
            older: objects[first.owner].name_any(),
            field: format!("spec.services[{}]", first.entry),
            clash: Clash::Service { service: format!("{namespace}/{name}"), more: more.len() },
        })
    };
    of_one_entry.filter_map(conflict).collect()
}
