//! Which of several objects is the older one. Where two cannot both have their way, that one stands.

use std::cmp::Ordering;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use crate::IngressSourcePreserve;

/// The objects from the oldest to the newest; of one age, by name. One without a time of creation does not exist yet, so it is
/// the newest.
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
