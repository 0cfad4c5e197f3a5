//! The cluster state that an object is checked against: the Services in the namespaces it names,
//! and the nodes; only names and labels.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use isp_api::IngressSourcePreserve;
use isp_api::sidecar::Labels;
use isp_client::plain;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tokio::try_join;

use super::rounds::{Limits, Unread};

/// API servers wait two seconds for a response. `names` is the schema's limit on the Services of an
/// object.
pub(crate) const LIMITS: Limits =
    Limits { patience: Duration::from_millis(1500), names: 64, rest: Duration::from_millis(250) };

/// How many namespaces are listed concurrently.
const AT_ONCE: usize = 8;

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    /// Namespace, name, labels.
    pub(crate) services: Vec<(String, String, Labels)>,
    /// Name, labels.
    pub(crate) nodes: Vec<(String, Labels)>,
}

/// The namespaces that an object names. Invalid names are dropped: the caller may not be an API
/// server, and such a name could change the path of our request.
pub(crate) fn namespaces(object: &IngressSourcePreserve) -> BTreeSet<String> {
    let named = object.spec.services.iter().map(|target| &target.namespace);
    named.filter(|name| is_label(name)).cloned().collect()
}

/// Whether this is a DNS label, as the schema requires.
fn is_label(name: &str) -> bool {
    let inner = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    (1..=63).contains(&name.len())
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// Data from the API server's watch cache is fresh enough.
fn new_enough() -> ListParams {
    ListParams::default().match_any()
}

/// Reads the Services of these namespaces, and the nodes.
pub(crate) async fn read(client: Client, namespaces: BTreeSet<String>) -> Result<Inventory, Unread> {
    let services = stream::iter(namespaces).map(|name| services_in(client.clone(), name)).buffered(AT_ONCE);
    let (services, nodes) = try_join!(services.try_concat(), nodes(client.clone()))
        .map_err(|error| Unread::Failed(plain(&error)))?;
    Ok(Inventory { services, nodes })
}

async fn nodes(client: Client) -> Result<Vec<(String, Labels)>, kube::Error> {
    let api: Api<Node> = Api::all(client);
    let found = api.list_metadata(&new_enough()).await?.items.into_iter();
    Ok(found.map(|node| (node.name_any(), node.metadata.labels.unwrap_or_default())).collect())
}

async fn services_in(
    client: Client,
    namespace: String,
) -> Result<Vec<(String, String, Labels)>, kube::Error> {
    let api: Api<Service> = Api::namespaced(client, &namespace);
    let found = api.list_metadata(&new_enough()).await?.items.into_iter();
    let services = found
        .map(|service| (namespace.clone(), service.name_any(), service.metadata.labels.unwrap_or_default()));
    Ok(services.collect())
}
