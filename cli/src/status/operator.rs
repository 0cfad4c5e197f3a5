//! Whether an operator runs: the replica that acts renews a Lease every few seconds.

use std::time::Duration;

use isp_api::names::OPERATOR_FIELD_MANAGER;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Api;
use tokio::time::sleep;

use crate::connection::Connection;
use crate::error::CommandError;
use crate::read;
use crate::text::age;

#[cfg(test)]
mod tests;

/// The clocks of this machine and of the operator's node may differ by this much.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(60);
/// The holder renews the Lease within this time; every 3 s by default.
const RENEWAL: Duration = Duration::from_secs(6);
/// The duration of a Lease that does not state one.
const DEFAULT_DURATION: i32 = 15;

/// The state of the operator, as far as its Lease shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Running,
    /// The Lease is not renewed any more.
    Silent {
        since: Timestamp,
        lease: String,
    },
    /// The last operator has ended and released the Lease.
    Ended {
        lease: String,
    },
    NoLease {
        namespace: String,
    },
    /// The Lease cannot be read.
    Unknown {
        problem: String,
    },
}

impl Operator {
    pub(super) async fn read(connection: &Connection, namespace: &str, now: Timestamp) -> Self {
        let api: Api<Lease> = Api::namespaced(connection.client.clone(), namespace);
        let state = Self::read_once(connection, &api, namespace, now).await;
        let Self::Silent { since, .. } = &state else { return state };
        // The clocks may differ by more than expected. A Lease that changes is proof without
        // clocks.
        sleep(RENEWAL).await;
        match Self::read_once(connection, &api, namespace, now).await {
            Self::Silent { since: later, .. } if later != *since => Self::Running,
            other => other,
        }
    }

    async fn read_once(connection: &Connection, api: &Api<Lease>, namespace: &str, now: Timestamp) -> Self {
        match api.get_opt(OPERATOR_FIELD_MANAGER).await {
            Ok(Some(lease)) => Self::of(&lease, namespace, now),
            Ok(None) => Self::NoLease { namespace: namespace.to_owned() },
            Err(error) => {
                let problem = match connection.problem("get", &read::resource::<Lease>(), error) {
                    CommandError::Forbidden { verb, resource, .. } => {
                        format!("the right to {verb} {resource} in namespace {namespace} is missing")
                    }
                    other => other.to_string(),
                };
                Self::Unknown { problem }
            }
        }
    }

    fn of(lease: &Lease, namespace: &str, now: Timestamp) -> Self {
        let name = format!("{namespace}/{OPERATOR_FIELD_MANAGER}");
        let spec = lease.spec.as_ref();
        let holder = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
        let renewed = spec.and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0);
        let (Some(renewed), false) = (renewed, holder.is_empty()) else {
            return Self::Ended { lease: name };
        };
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or(DEFAULT_DURATION);
        let valid = SignedDuration::from_secs(i64::from(seconds)) + CLOCK_SKEW;
        if now.duration_since(renewed) <= valid {
            Self::Running
        } else {
            Self::Silent { since: renewed, lease: name }
        }
    }

    /// Whether it is certain that no operator acts, so that the status of objects is outdated.
    pub(super) fn is_down(&self) -> bool {
        match self {
            Self::Running | Self::Unknown { .. } => false,
            Self::Silent { .. } | Self::Ended { .. } | Self::NoLease { .. } => true,
        }
    }

    /// One line for people. None: it runs.
    pub(super) fn notice(&self, now: Timestamp) -> Option<String> {
        Some(match self {
            Self::Running => return None,
            Self::Silent { since, lease } => {
                let age = age(*since, now);
                format!("operator: not running: Lease {lease} was last renewed {age} ago")
            }
            Self::Ended { lease } => format!("operator: not running: nobody holds Lease {lease}"),
            Self::NoLease { namespace } => format!(
                "operator: not running: namespace {namespace} has no Lease {OPERATOR_FIELD_MANAGER}; if the operator is \
                 installed elsewhere, name its namespace with --operator-namespace"
            ),
            Self::Unknown { problem } => {
                format!("operator: state unknown, the status below may be outdated: {problem}")
            }
        })
    }
}
