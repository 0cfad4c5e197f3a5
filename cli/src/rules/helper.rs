//! The helper pod: created on the pod's node, waited for, read and deleted, whatever happens.
//!
//! This program chooses the helper's name, so it can delete the helper even if the answer to its
//! creation is lost. If the program is killed, the helper ends by itself, and a later run deletes
//! it.

mod manifest;
mod state;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use isp_client::chain;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, ListParams, LogParams, PostParams};
use tokio::time::{sleep, timeout};

use self::manifest::{LABELS, PREFIX, is_helper, manifest};
use self::state::State;
use super::RulesError;
use super::interrupt::Interrupt;
use super::target::Target;
use crate::connection::Connection;
use crate::error::CommandError;
use crate::{progress, read};

/// How long the kubelet lets the helper live.
const LIFETIME: Duration = Duration::from_mins(2);
/// How long to wait for its end.
const PATIENCE: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(250);
/// How long a deletion may take, all attempts together.
const DELETION: Duration = Duration::from_secs(20);
const FORBIDDEN: u16 = 403;
const NOT_FOUND: u16 = 404;

/// The helpers of a namespace.
pub(crate) struct Helpers<'a> {
    connection: &'a Connection,
    namespace: &'a str,
    pods: Api<Pod>,
}

impl<'a> Helpers<'a> {
    pub(crate) fn new(connection: &'a Connection, namespace: &'a str) -> Self {
        Self { connection, namespace, pods: Api::namespaced(connection.client.clone(), namespace) }
    }

    /// Deletes helpers that have outlived their time: their program was killed. Pods of others may
    /// have the same labels, so a helper is known by its name and its container, too.
    pub(crate) async fn remove_old(&self) -> Result<(), CommandError> {
        let labels = LABELS.map(|(name, value)| format!("{name}={value}")).join(",");
        let found = self.pods.list(&ListParams::default().labels(&labels)).await;
        let found = found.map_err(|error| self.problem("list", error))?;
        let now = Timestamp::now();
        for pod in found {
            let created = pod.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
            if !is_helper(&pod) || !is_old(created, now) {
                continue;
            }
            if let Some(name) = pod.metadata.name {
                self.delete(&name).await?;
            }
        }
        Ok(())
    }

    /// Runs a helper for a pod, and returns what it prints.
    pub(crate) async fn read(
        &self,
        target: &Target,
        image: &str,
        interrupt: &Interrupt,
    ) -> Result<String, CommandError> {
        if interrupt.has_come() {
            return Err(RulesError::Interrupted.into());
        }
        let name = format!("{PREFIX}{:016x}", RandomState::new().build_hasher().finish());
        let pod = manifest(&name, target, image, LIFETIME);
        // A signal does not cancel the request: whether the pod exists would then not be known.
        let result = match self.pods.create(&PostParams::default(), &pod).await {
            Ok(_) => tokio::select! {
                text = self.wait(&name, target) => text,
                () = interrupt.come() => Err(RulesError::Interrupted.into()),
            },
            Err(kube::Error::Api(status)) if status.code == FORBIDDEN => {
                let (namespace, answer) = (self.namespace.to_owned(), status.message.clone());
                return Err(RulesError::NotAdmitted { namespace, answer }.into());
            }
            Err(error) => Err(self.problem("create", error)),
        };
        let deleted = self.delete(&name).await;
        // The first error is the cause.
        let text = result?;
        deleted?;
        Ok(text)
    }

    /// Waits for the end of the helper.
    async fn wait(&self, name: &str, target: &Target) -> Result<String, CommandError> {
        let node = || target.node.clone();
        let mut last = String::from("it was not started");
        let ended = timeout(PATIENCE, async {
            loop {
                let pod = self.pods.get_opt(name).await.map_err(|error| self.problem("get", error))?;
                let Some(pod) = pod else { return Err(RulesError::Deleted(name.to_owned()).into()) };
                match State::of(&pod) {
                    State::Waiting(reason) => {
                        let node = &target.node;
                        progress::show(format!("waiting for the helper pod {name} on node {node}: {reason}"));
                        last = reason;
                    }
                    State::Stuck(reason) => {
                        return Err(RulesError::NotStarted { node: node(), reason }.into());
                    }
                    State::Failed(reason) => return Err(RulesError::Failed { node: node(), reason }.into()),
                    State::Succeeded => break,
                }
                sleep(POLL).await;
            }
            let log = self.pods.logs(name, &LogParams::default()).await;
            log.map_err(|error| self.connection.problem("get", "pods/log", error))
        });
        let seconds = PATIENCE.as_secs();
        match ended.await {
            Ok(result) => result,
            Err(_) => Err(RulesError::Late { node: node(), seconds, state: last }.into()),
        }
    }

    /// Deletes a helper at once. It has nothing to finish.
    async fn delete(&self, name: &str) -> Result<(), CommandError> {
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        let mut cause = String::from("the API server did not answer");
        let deleted = timeout(DELETION, async {
            loop {
                match self.pods.delete(name, &now).await {
                    Ok(_) => return,
                    Err(kube::Error::Api(status)) if status.code == NOT_FOUND => return,
                    Err(error) => cause = chain(&error),
                }
                sleep(POLL).await;
            }
        })
        .await;
        deleted.map_err(|_| {
            let (namespace, name) = (self.namespace.to_owned(), name.to_owned());
            RulesError::NotDeleted { namespace, name, cause }.into()
        })
    }

    fn problem(&self, verb: &'static str, error: kube::Error) -> CommandError {
        self.connection.problem(verb, &read::resource::<Pod>(), error)
    }
}

/// Whether the program of a helper must have been killed. Twice the time, because the clocks of the
/// two machines may differ.
fn is_old(created: Timestamp, now: Timestamp) -> bool {
    u64::try_from(now.duration_since(created).as_secs()).is_ok_and(|age| age > 2 * LIFETIME.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_of_somebody_else_with_the_same_labels_is_no_helper() {
        let target = Target {
            key: isp_plan::Key { namespace: "shop".to_owned(), name: "cart".to_owned() },
            pod: Pod::default(),
            node: "work-1".to_owned(),
            addresses: vec!["10.244.1.5".parse().unwrap()],
        };
        let helper = manifest("isp-rules-0", &target, "image", LIFETIME);
        assert!(is_helper(&helper));
        let mut other = helper.clone();
        other.metadata.name = Some("database-0".to_owned());
        assert!(!is_helper(&other));
        let mut other = helper;
        other.spec.as_mut().unwrap().containers[0].name = "database".to_owned();
        assert!(!is_helper(&other));
    }

    #[test]
    fn a_helper_is_old_when_nobody_can_be_waiting_for_it() {
        let at = |second| Timestamp::from_second(second).unwrap();
        for (age, old) in [(-1000, false), (0, false), (120, false), (241, true)] {
            assert_eq!(is_old(at(10_000), at(10_000 + age)), old, "{age}");
        }
    }
}
