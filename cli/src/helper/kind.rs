//! Which pods are the helpers of a command. Pure.
//!
//! Pods of others may have the same labels, so a helper is known by its name and its container,
//! too.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use isp_api::names::NAME_LABEL;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;

const PART_OF: (&str, &str) = ("app.kubernetes.io/part-of", "ingress-source-preserve");

/// The helpers of a command.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The value of the label `app.kubernetes.io/name`. Names begin with it and a dash.
    pub(crate) name: &'static str,
    /// The name of the only container.
    pub(crate) containers: &'static [&'static str],
    /// How long the kubelet lets a helper live.
    pub(crate) lifetime: Duration,
}

impl Kind {
    /// By these labels a later run finds helpers.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        let own = (NAME_LABEL, self.name);
        [own, PART_OF].map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    pub(crate) fn selector(&self) -> String {
        let labels = self.labels().into_iter().map(|(name, value)| format!("{name}={value}"));
        labels.collect::<Vec<_>>().join(",")
    }

    /// A name that no other helper has. This program chooses it, so it can delete the helper even
    /// if the answer to its creation is lost.
    pub(crate) fn new_name(&self) -> String {
        format!("{}-{:016x}", self.name, RandomState::new().build_hasher().finish())
    }

    pub(crate) fn is_named(&self, metadata: &ObjectMeta) -> bool {
        let name = metadata.name.as_deref().and_then(|name| name.strip_prefix(self.name));
        let labels = metadata.labels.as_ref();
        let has = |(key, value): (String, String)| labels.and_then(|all| all.get(&key)) == Some(&value);
        name.is_some_and(|rest| rest.starts_with('-')) && self.labels().into_iter().all(has)
    }

    /// Whether a pod is a helper of this kind.
    pub(crate) fn is_helper(&self, pod: &Pod) -> bool {
        let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
        let known = matches!(containers, [only] if self.containers.contains(&only.name.as_str()));
        self.is_named(&pod.metadata) && known
    }

    /// Whether the program of a helper must have been killed. Twice the time, because the clocks of
    /// the two machines may differ.
    pub(crate) fn is_old(&self, metadata: &ObjectMeta, now: Timestamp) -> bool {
        let created = metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
        let age = u64::try_from(now.duration_since(created).as_secs());
        age.is_ok_and(|age| age > 2 * self.lifetime.as_secs())
    }
}

#[cfg(test)]
mod tests;
