//! Carries out one write, and says what became of it.

use std::time::Duration;

use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_client::plain;
use isp_plan::Key;
use isp_plan::action::{Resource, Verb, Write};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::index::Answer;
use crate::metrics::Outcome;

#[cfg(test)]
mod tests;

const DEADLINE: Duration = Duration::from_secs(10);

/// Why a write was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) outcome: Outcome,
    pub(crate) reason: String,
}

/// Carries it out. It may have been carried out even if there is no answer.
pub(crate) async fn carry_out(client: Client, write: Write) -> Result<Answer, Failure> {
    match timeout(DEADLINE, send(client, write)).await {
        Ok(result) => result.map_err(|error| classify(&error)),
        Err(_) => Err(Failure {
            outcome: Outcome::TimedOut,
            reason: format!("no answer within {} s", DEADLINE.as_secs()),
        }),
    }
}

async fn send(client: Client, write: Write) -> Result<Answer, kube::Error> {
    let namespaced = write.namespace.as_deref().unwrap_or_default();
    match write.resource {
        Resource::Service => {
            let api: Api<Service> = Api::namespaced(client, namespaced);
            patch(&api, &write).await.map(Answer::Service)
        }
        Resource::Node => patch(&Api::<Node>::all(client), &write).await.map(Answer::Node),
        Resource::Preserve => {
            patch(&Api::<IngressSourcePreserve>::all(client), &write).await.map(Answer::Object)
        }
        Resource::PreserveStatus => {
            let api: Api<IngressSourcePreserve> = Api::all(client);
            let (parameters, patch) = patch_of(&write);
            Ok(Answer::Object(Box::new(api.patch_status(&write.name, &parameters, &patch).await?)))
        }
        Resource::DaemonSet => {
            let api: Api<DaemonSet> = Api::namespaced(client, namespaced);
            match write.verb {
                Verb::Delete => delete(&api, &write).await,
                _ => patch(&api, &write).await.map(Answer::DaemonSet),
            }
        }
        Resource::NodeReport => delete(&Api::<IngressSourceNode>::all(client), &write).await,
        Resource::Own(kind) => {
            let resource = kind.resource();
            let api: Api<DynamicObject> = match &write.namespace {
                Some(namespace) => Api::namespaced_with(client, namespace, &resource),
                None => Api::all_with(client, &resource),
            };
            match write.verb {
                Verb::Delete => delete(&api, &write).await,
                _ => patch(&api, &write).await.map(|object| Answer::Own(kind, object)),
            }
        }
    }
}

fn patch_of(write: &Write) -> (PatchParams, Patch<&serde_json::Value>) {
    match &write.verb {
        Verb::Apply { manager } => (PatchParams::apply(manager).force(), Patch::Apply(&write.body)),
        Verb::Merge { manager } => (
            PatchParams { field_manager: Some(manager.clone()), ..PatchParams::default() },
            Patch::Merge(&write.body),
        ),
        // Deletions do not come here.
        Verb::Delete => (PatchParams::default(), Patch::Merge(&write.body)),
    }
}

async fn patch<K>(api: &Api<K>, write: &Write) -> Result<Box<K>, kube::Error>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let (parameters, patch) = patch_of(write);
    Ok(Box::new(api.patch(&write.name, &parameters, &patch).await?))
}

async fn delete<K>(api: &Api<K>, write: &Write) -> Result<Answer, kube::Error>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let of = |name: &str| write.body[name].as_str().map(str::to_owned);
    let (uid, resource_version) = (of("uid"), of("resourceVersion"));
    let key = Key::new(write.namespace.clone().unwrap_or_default(), &*write.name);
    let gone = Answer::Gone { resource: write.resource, key, uid: uid.clone().unwrap_or_default() };
    let preconditions = Some(Preconditions { uid, resource_version });
    api.delete(&write.name, &DeleteParams { preconditions, ..DeleteParams::default() }).await?;
    Ok(gone)
}

/// What an error means. Pure.
fn classify(error: &kube::Error) -> Failure {
    let outcome = match error {
        kube::Error::Api(status) => match status.code {
            409 => Outcome::Stale,
            404 => Outcome::Gone,
            429 => Outcome::Throttled,
            500.. => Outcome::ServerError,
            _ => Outcome::Refused,
        },
        _ => Outcome::Unreachable,
    };
    Failure { outcome, reason: plain(error) }
}
