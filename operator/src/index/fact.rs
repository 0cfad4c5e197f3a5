//! The index's view of a fact: the resource version it comes from, and how it differs from an older
//! one.

use std::sync::Arc;

use isp_api::IngressSourcePreserve;
use isp_api::sidecar::Labels;
use isp_plan::cluster::{DaemonSet, Identity, Node, Pod, RedirectPod, Report, Service, SidecarPod, Written};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::News;

/// A fact about an object.
pub(super) trait Fact {
    /// The object's resource version, if the fact keeps it. Versions of one kind are comparable.
    fn version(&self) -> Option<u64>;

    /// How this fact differs from the one before.
    fn news_after(&self, before: &Self) -> News;
}

/// The resource version as a number. Newer versions have greater numbers; nothing else is
/// guaranteed.
pub(super) fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}

fn judge(same_version: bool, same_facts: bool) -> News {
    match (same_version, same_facts) {
        (true, true) => News::Nothing,
        (false, true) => News::Version,
        (_, false) => News::Facts,
    }
}

fn judge_identity(now: &Identity, before: &Identity, same_facts: bool) -> News {
    judge(now.version == before.version, now.uid == before.uid && same_facts)
}

impl Fact for IngressSourcePreserve {
    fn version(&self) -> Option<u64> {
        number(self.metadata.resource_version.as_deref()?)
    }

    fn news_after(&self, before: &Self) -> News {
        let unversioned = |object: &Self| ObjectMeta { resource_version: None, ..object.metadata.clone() };
        judge(
            self.metadata.resource_version == before.metadata.resource_version,
            self.spec == before.spec
                && self.status == before.status
                && unversioned(self) == unversioned(before),
        )
    }
}

impl Fact for Service {
    fn version(&self) -> Option<u64> {
        number(&self.identity.version)
    }

    fn news_after(&self, before: &Self) -> News {
        let Self {
            identity,
            labels,
            record,
            exposed,
            balanced,
            policy,
            health_check_node_port,
            addresses,
            owners,
            last_applied,
            deleting,
        } = self;
        let same = *labels == before.labels
            && *record == before.record
            && *exposed == before.exposed
            && *balanced == before.balanced
            && *policy == before.policy
            && *health_check_node_port == before.health_check_node_port
            && *addresses == before.addresses
            && *owners == before.owners
            && *last_applied == before.last_applied
            && *deleting == before.deleting;
        judge_identity(identity, &before.identity, same)
    }
}

impl Fact for Node {
    fn version(&self) -> Option<u64> {
        number(&self.identity.version)
    }

    /// Ignores everything else: kubelets update their node's status constantly, mostly without a
    /// change.
    fn news_after(&self, before: &Self) -> News {
        let Self { identity, labels, ready, taints, pool, revision, images, handover, failure } = self;
        let same = *labels == before.labels
            && *ready == before.ready
            && *taints == before.taints
            && *pool == before.pool
            && *revision == before.revision
            && *images == before.images
            && *handover == before.handover
            && *failure == before.failure;
        judge_identity(identity, &before.identity, same)
    }
}

impl Fact for Report {
    fn version(&self) -> Option<u64> {
        number(&self.identity.version)
    }

    fn news_after(&self, before: &Self) -> News {
        let Self { identity, mode, pool, revision, active, served, acknowledged } = self;
        let same = *mode == before.mode
            && *pool == before.pool
            && *revision == before.revision
            && *active == before.active
            && *served == before.served
            && *acknowledged == before.acknowledged;
        judge_identity(identity, &before.identity, same)
    }
}

impl Fact for DaemonSet {
    fn version(&self) -> Option<u64> {
        number(&self.identity.version)
    }

    /// Ignores the status: it only counts pods, which have their own watch.
    fn news_after(&self, before: &Self) -> News {
        let Self { identity, object, owners, made, last_writer, record } = self;
        let (now, was) = (&object.metadata, &before.object.metadata);
        let same = object.spec == before.object.spec
            && now.labels == was.labels
            && now.annotations == was.annotations
            && now.deletion_timestamp == was.deletion_timestamp
            && *owners == before.owners
            && *made == before.made
            && *last_writer == before.last_writer
            && *record == before.record;
        judge_identity(identity, &before.identity, same)
    }
}

impl Fact for Written {
    fn version(&self) -> Option<u64> {
        number(&self.identity.version)
    }

    fn news_after(&self, before: &Self) -> News {
        let Self { identity, ours, deleting, content } = self;
        let same = *ours == before.ours && *deleting == before.deleting && *content == before.content;
        judge_identity(identity, &before.identity, same)
    }
}

/// Facts of kinds that the operator never writes keep no version.
macro_rules! only_watched {
    ($($fact:ty),*) => {
        $(impl Fact for $fact {
            fn version(&self) -> Option<u64> {
                None
            }

            fn news_after(&self, before: &Self) -> News {
                judge(true, self == before)
            }
        })*
    };
}

only_watched!(Pod, RedirectPod, SidecarPod, Arc<Labels>, String);
