//! Whether the Service's own pods have a sidecar that hides clients from their application. A
//! canary has no sidecar, so it would not show that.

use isp_api::sidecar::Sidecar;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt};

use super::subject::Subject;
use crate::connection::Connection;
use crate::error::CommandError;
use crate::read;

/// The first pod of the Service whose application sees its sidecar's address.
pub(crate) async fn hiding(
    connection: &Connection,
    subject: &Subject,
) -> Result<Option<String>, CommandError> {
    let pods: Api<Pod> = Api::namespaced(connection.client.clone(), &subject.key.namespace);
    for name in &subject.pods {
        let pod = pods.get_opt(name).await;
        let pod = pod.map_err(|error| connection.problem("get", &read::resource::<Pod>(), error))?;
        if let Some(pod) = pod.filter(|pod| Sidecar::of(pod).is_some_and(|sidecar| sidecar.hides_peer())) {
            return Ok(Some(pod.name_any()));
        }
    }
    Ok(None)
}
