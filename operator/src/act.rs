//! Sends one write to the API server and classifies the result.

use std::time::Duration;

use isp_client::plain;
use isp_plan::action::{Request, Resource, Target, Write};
use isp_plan::cluster::Identity;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::timeout;

use crate::index::Answer;
use crate::metrics::Outcome;

#[cfg(test)]
mod tests;

const DEADLINE: Duration = Duration::from_secs(10);

/// Why a write failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) outcome: Outcome,
    pub(crate) reason: String,
}

/// Sends the write. After a timeout or a connection error it may still have taken effect.
pub(crate) async fn carry_out(client: Client, write: Write) -> Result<Answer, Failure> {
    match timeout(DEADLINE, send(client, write)).await {
        Ok(result) => result.map_err(|error| classify(&error)),
        Err(_) => Err(Failure {
            outcome: Outcome::TimedOut,
            reason: format!("no answer within {} s", DEADLINE.as_secs()),
        }),
    }
}

async fn send(client: Client, Write { target, request }: Write) -> Result<Answer, kube::Error> {
    let resource = target.resource.api();
    let api: Api<DynamicObject> = match target.key.namespace.as_str() {
        "" => Api::all_with(client, &resource),
        namespace => Api::namespaced_with(client, namespace, &resource),
    };
    match request {
        Request::Apply { manager, body } => {
            patch(&api, target, &PatchParams::apply(manager).force(), &Patch::Apply(body)).await
        }
        Request::Merge { manager, body } => {
            let parameters = PatchParams { field_manager: Some(manager), ..PatchParams::default() };
            patch(&api, target, &parameters, &Patch::Merge(body)).await
        }
        Request::Delete(Identity { uid, version }) => {
            let preconditions = Preconditions { uid: Some(uid.clone()), resource_version: Some(version) };
            let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
            api.delete(&target.key.name, &parameters).await?;
            Ok(Answer::Gone { target, uid })
        }
    }
}

async fn patch(
    api: &Api<DynamicObject>,
    target: Target,
    parameters: &PatchParams,
    patch: &Patch<Value>,
) -> Result<Answer, kube::Error> {
    let object = match target.resource {
        Resource::PreserveStatus => api.patch_status(&target.key.name, parameters, patch).await?,
        _ => api.patch(&target.key.name, parameters, patch).await?,
    };
    Ok(Answer::Written(target.resource, Box::new(object)))
}

/// Maps an error to an outcome. Pure.
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
