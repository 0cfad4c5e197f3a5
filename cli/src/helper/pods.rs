//! Helper pods of a namespace: created, waited for, read and deleted.
//!
//! If the program is killed, its helpers end by themselves, and a later run deletes them.

use std::time::Duration;

use isp_client::chain;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, ListParams, LogParams, PostParams};
use tokio::time::{sleep, timeout};

use super::state::State;
use super::{HelperError, Kind};
use crate::connection::Connection;
use crate::error::CommandError;
use crate::{progress, read};

/// How long to wait for a helper.
const PATIENCE: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(250);
/// How long a deletion may take, all attempts together.
const DELETION: Duration = Duration::from_secs(20);
const FORBIDDEN: u16 = 403;
const NOT_FOUND: u16 = 404;

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    Ready,
    Succeeded,
}

/// The helpers of a namespace.
pub(crate) struct Helpers<'a> {
    connection: &'a Connection,
    namespace: &'a str,
    kind: &'static Kind,
    /// What the namespace must admit, and the way out if it does not.
    needs: &'static str,
    pods: Api<Pod>,
}

impl<'a> Helpers<'a> {
    pub(crate) fn new(
        connection: &'a Connection,
        namespace: &'a str,
        kind: &'static Kind,
        needs: &'static str,
    ) -> Self {
        let pods = Api::namespaced(connection.client.clone(), namespace);
        Self { connection, namespace, kind, needs, pods }
    }

    /// Deletes helpers that have outlived their time: their program was killed.
    pub(crate) async fn remove_old(&self) -> Result<(), CommandError> {
        let wanted = ListParams::default().labels(&self.kind.selector());
        let found = read::all(self.connection, self.pods.clone(), wanted).await?;
        let now = Timestamp::now();
        for pod in found {
            if let Some(name) = &pod.metadata.name
                && self.kind.is_helper(&pod)
                && self.kind.is_old(&pod.metadata, now)
            {
                self.delete(name).await?;
            }
        }
        Ok(())
    }

    /// Creates a helper. No signal cancels the request: whether the pod exists would then not be
    /// known.
    pub(crate) async fn create(&self, pod: &Pod) -> Result<Pod, CommandError> {
        match self.pods.create(&PostParams::default(), pod).await {
            Ok(pod) => Ok(pod),
            Err(kube::Error::Api(status)) if status.code == FORBIDDEN => {
                let (namespace, answer) = (self.namespace.to_owned(), status.message.clone());
                Err(HelperError::NotAdmitted { namespace, answer, needs: self.needs }.into())
            }
            Err(error) => Err(self.problem("create", error)),
        }
    }

    /// Waits until a helper is as far as wanted.
    pub(crate) async fn wait(&self, name: &str, node: &str, goal: Goal) -> Result<Pod, CommandError> {
        let node = || node.to_owned();
        let mut last = String::from("it was not started");
        let ended = timeout(PATIENCE, async {
            loop {
                let pod = self.pods.get_opt(name).await.map_err(|error| self.problem("get", error))?;
                let Some(pod) = pod else { return Err(HelperError::Deleted(name.to_owned()).into()) };
                match State::of(&pod) {
                    State::Waiting(reason) => {
                        let node = node();
                        progress::show(format!("waiting for the pod {name} on node {node}: {reason}"));
                        last = reason;
                    }
                    State::Ready if goal == Goal::Ready => return Ok(pod),
                    State::Ready => "running".clone_into(&mut last),
                    State::Stuck(reason) => {
                        return Err(HelperError::NotStarted { node: node(), reason }.into());
                    }
                    State::Failed(reason) => return Err(HelperError::Failed { node: node(), reason }.into()),
                    State::Succeeded => return Ok(pod),
                }
                sleep(POLL).await;
            }
        });
        let seconds = PATIENCE.as_secs();
        match ended.await {
            Ok(result) => result,
            Err(_) => Err(HelperError::Late { node: node(), seconds, state: last }.into()),
        }
    }

    /// What a helper has printed.
    pub(crate) async fn log(&self, name: &str) -> Result<String, CommandError> {
        let log = self.pods.logs(name, &LogParams::default()).await;
        log.map_err(|error| self.connection.problem("get", "pods/log", error))
    }

    /// Deletes a helper at once. It has nothing to finish.
    pub(crate) async fn delete(&self, name: &str) -> Result<(), CommandError> {
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        delete(&self.pods, "pod", self.namespace, name, &now).await
    }

    fn problem(&self, verb: &'static str, error: kube::Error) -> CommandError {
        self.connection.problem(verb, &read::resource::<Pod>(), error)
    }
}

/// Deletes an object, if it exists. Retries for a while.
pub(crate) async fn delete<K>(
    api: &Api<K>,
    kind: &'static str,
    namespace: &str,
    name: &str,
    parameters: &DeleteParams,
) -> Result<(), CommandError>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let mut cause = String::from("the API server did not answer");
    let deleted = timeout(DELETION, async {
        loop {
            match api.delete(name, parameters).await {
                Ok(_) => return,
                Err(kube::Error::Api(status)) if status.code == NOT_FOUND => return,
                Err(error) => cause = chain(&error),
            }
            sleep(POLL).await;
        }
    })
    .await;
    deleted.map_err(|_| {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        HelperError::NotDeleted { kind, namespace, name, cause }.into()
    })
}
