//! Orders objects by age. In a conflict, the older object wins.

use std::cmp::Ordering;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use crate::IngressSourcePreserve;

/// Sorts objects from oldest to newest, then by name. An object without a creation timestamp does
/// not exist yet and counts as the newest.
pub fn by_age<'a>(
    objects: impl IntoIterator<Item = &'a IngressSourcePreserve>,
) -> Vec<&'a IngressSourcePreserve> {
    let mut objects: Vec<_> = objects.into_iter().collect();
    objects.sort_by(|a, b| age(a, b));
    objects
}

fn age(a: &IngressSourcePreserve, b: &IngressSourcePreserve) -> Ordering {
    let created = |object: &IngressSourcePreserve| object.metadata.creation_timestamp.clone();
    let by_time = match (created(a), created(b)) {
        (Some(Time(a)), Some(Time(b))) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    };
    by_time.then_with(|| a.name_any().cmp(&b.name_any()))
}
