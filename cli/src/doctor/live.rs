//! The facts of a live cluster, read page by page. A kind that the cluster does not have counts as
//! read and empty; a kind that may not be listed is recorded as not read.

use std::collections::BTreeSet;

use isp_plan::Key;
use isp_plan::observe::runs_kube_proxy;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};

use super::cluster::{Cluster, Missing};
use super::kinds::Kind;
use crate::connection::Connection;
use crate::error::CommandError;

const PAGE: u32 = 250;

pub(super) async fn read(connection: &Connection) -> Result<Cluster, CommandError> {
    let mut cluster = Cluster::default();
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::ConfigMap) {
        list(connection, &mut cluster, kind, &ListParams::default()).await?;
    }
    for wanted in [
        ListParams::default().fields("metadata.name=istio"),
        ListParams::default().labels(isp_api::sidecar::REVISION_LABEL),
    ] {
        list(connection, &mut cluster, Kind::ConfigMap, &wanted).await?;
    }
    mounted_config_maps(connection, &mut cluster).await?;
    Ok(cluster)
}

/// Reads only these kinds, and the settings of kube-proxies.
pub(super) async fn read_some(connection: &Connection, kinds: &[Kind]) -> Result<Cluster, CommandError> {
    let mut cluster = Cluster::default();
    for kind in kinds {
        list(connection, &mut cluster, *kind, &ListParams::default()).await?;
    }
    mounted_config_maps(connection, &mut cluster).await?;
    Ok(cluster)
}

/// Reads only the `ConfigMap`s of kube-proxies and ingress controllers.
async fn mounted_config_maps(connection: &Connection, cluster: &mut Cluster) -> Result<(), CommandError> {
    for key in mounted(cluster) {
        let named = ListParams::default()
            .fields(&format!("metadata.name={},metadata.namespace={}", key.name, key.namespace));
        list(connection, cluster, Kind::ConfigMap, &named).await?;
    }
    Ok(())
}

fn mounted(cluster: &Cluster) -> BTreeSet<Key> {
    let volumes = cluster.daemon_sets.iter().flat_map(|(key, set)| {
        let pod = set.object.spec.template.spec.as_ref();
        let proxies = pod.filter(|pod| pod.containers.iter().any(runs_kube_proxy));
        let volumes = proxies.and_then(|pod| pod.volumes.as_ref()).into_iter().flatten();
        volumes.filter_map(|volume| Some(Key::new(&*key.namespace, &*volume.config_map.as_ref()?.name)))
    });
    let controllers = cluster.pods.values().filter_map(|pod| pod.controller.as_ref()?.settings.clone());
    volumes.chain(controllers).collect()
}

async fn list(
    connection: &Connection,
    cluster: &mut Cluster,
    kind: Kind,
    wanted: &ListParams,
) -> Result<(), CommandError> {
    for resource in kind.resources() {
        match pages(connection, cluster, kind, &resource, wanted.clone()).await {
            Ok(()) => break,
            Err(Failure::Api(kube::Error::Api(status))) if status.code == 404 => {}
            Err(Failure::Api(kube::Error::Api(status)))
                if status.code == 403 && !is_served(connection, &resource).await => {}
            // A kind that cannot be listed, as with a broken conversion webhook, is skipped.
            Err(Failure::Api(kube::Error::Api(status)))
                if status.code != 401 && kind != Kind::IngressSourcePreserve =>
            {
                let missing = match status.code {
                    403 => Missing::Forbidden,
                    _ => Missing::Failed(status.message.clone()),
                };
                cluster.not_looked_at.insert(kind, missing);
                // The pages before are incomplete.
                cluster.looked_at.remove(&kind);
                return Ok(());
            }
            Err(Failure::Api(error)) => return Err(connection.problem("list", &kind.resource(), error)),
            Err(Failure::Unreadable(error)) => return Err(error),
        }
    }
    cluster.looked_at.insert(kind);
    Ok(())
}

/// Whether the cluster has the kind at all: the API server checks rights before existence.
async fn is_served(connection: &Connection, resource: &ApiResource) -> bool {
    if resource.group.is_empty() {
        return true;
    }
    match connection.client.list_api_group_resources(&resource.api_version).await {
        Ok(served) => served.resources.iter().any(|known| known.name == resource.plural),
        Err(kube::Error::Api(status)) if status.code == 404 => false,
        Err(_) => true,
    }
}

enum Failure {
    Api(kube::Error),
    Unreadable(CommandError),
}

async fn pages(
    connection: &Connection,
    cluster: &mut Cluster,
    kind: Kind,
    resource: &ApiResource,
    wanted: ListParams,
) -> Result<(), Failure> {
    let api: Api<DynamicObject> = Api::all_with(connection.client.clone(), resource);
    let mut page = wanted.limit(PAGE);
    loop {
        let list = api.list(&page).await.map_err(Failure::Api)?;
        for object in list.items {
            take(cluster, kind, &object).map_err(Failure::Unreadable)?;
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page.continue_token = Some(token),
            None => return Ok(()),
        }
    }
}

fn take(cluster: &mut Cluster, kind: Kind, object: &DynamicObject) -> Result<(), CommandError> {
    let name = isp_plan::observe::key(&object.metadata);
    let taken = serde_json::to_value(object).and_then(|value| cluster.take(kind, value));
    taken.map_err(|error| CommandError::Document {
        place: format!("{} {name}", kind.as_str()),
        problem: error.to_string(),
    })
}
