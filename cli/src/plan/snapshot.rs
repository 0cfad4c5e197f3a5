//! A snapshot of the facts that the operator watches, as far as a plan uses them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use isp_api::names::{AGENT_NAME, IMAGES_NAME, NAME_LABEL, OBJECT_WEBHOOK_CONFIGURATION};
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_plan::build::pod_policy::API_VERSION;
use isp_plan::cluster::Admission;
use isp_plan::own::{Found, OwnKind};
use isp_plan::{Cluster, Key, observe};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::DaemonSet as DaemonSetObject;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::connection::Connection;
use crate::error::CommandError;
use crate::read;

/// The existing objects by name.
pub(super) async fn objects(
    connection: &Connection,
) -> Result<BTreeMap<String, IngressSourcePreserve>, CommandError> {
    let mut objects = BTreeMap::new();
    read::each(connection, api(connection), ListParams::default(), |mut object: IngressSourcePreserve| {
        object.metadata.managed_fields = None;
        objects.insert(object.name_any(), object);
    })
    .await?;
    Ok(objects)
}

/// The facts, for these objects.
pub(super) async fn read(
    connection: &Connection,
    objects: BTreeMap<String, IngressSourcePreserve>,
) -> Result<Cluster, CommandError> {
    let mut cluster = Cluster { objects, ..Cluster::default() };
    let everything = ListParams::default;
    read::each(connection, api(connection), everything(), |service: Service| {
        cluster.services.insert(observe::key(&service.metadata), observe::service(&service));
    })
    .await?;
    read::each(connection, api(connection), everything(), |node: Node| {
        cluster.nodes.insert(node.name_any(), observe::node(&node));
    })
    .await?;
    let mut shared = Vec::new();
    read::each(connection, api(connection), everything(), |report: IngressSourceNode| {
        cluster.reports.insert(report.name_any(), observe::report(&report, &mut shared));
    })
    .await?;
    read::each(connection, api(connection), everything(), |set: DaemonSetObject| {
        if let Some(facts) = observe::daemon_set(&set) {
            cluster.daemon_sets.insert(observe::key(&set.metadata), facts);
        }
    })
    .await?;
    endpoints(connection, &mut cluster).await?;
    pods(connection, &mut cluster).await?;
    cluster.admission = admission(connection).await?;
    own(connection, &mut cluster).await?;
    if cluster.objects.values().any(|object| !object.spec.sidecars.is_empty()) {
        sidecars(connection, &mut cluster).await?;
    }
    if cluster.objects.values().flat_map(|object| &object.spec.sidecars).any(|entry| entry.redirect.is_some())
    {
        redirects(connection, &mut cluster).await?;
    }
    Ok(cluster)
}

fn api<K>(connection: &Connection) -> Api<K>
where
    K: kube::Resource<DynamicType = ()>,
{
    Api::all(connection.client.clone())
}

/// Endpoints in namespaces that an object names, or that have a Service that the operator change
async fn endpoints(connection: &Connection, cluster: &mut Cluster) -> Result<(), CommandError> {
    let targets = cluster.objects.values().flat_map(|object| &object.spec.services);
    let changed = cluster.services.iter().filter(|(_, service)| service.record.is_some());
    let namespaces: BTreeSet<String> = targets
        .map(|target| target.namespace.clone())
        .chain(changed.map(|(key, _)| key.namespace.clone()))
        .collect();
    for namespace in namespaces {
        let api: Api<EndpointSlice> = Api::namespaced(connection.client.clone(), &namespace);
        read::each(connection, api, ListParams::default(), |slice| {
            if let Some((service, ready)) = observe::endpoint_slice(&slice) {
                cluster.endpoints.entry(service).or_default().insert(slice.name_any(), ready);
            }
        })
        .await?;
    }
    Ok(())
}

/// Pods of agents and kube-proxies, and the configuration of the kube-proxies.
async fn pods(connection: &Connection, cluster: &mut Cluster) -> Result<(), CommandError> {
    let take = |pods: &mut BTreeMap<_, _>, pod: &Pod, of: Option<&Key>| {
        let facts = observe::pod(pod);
        if let Some(facts) = facts.filter(|facts| of.is_none_or(|set| facts.daemon_set == *set)) {
            pods.insert(observe::key(&pod.metadata), facts);
        }
    };
    let agents = ListParams::default().labels(&format!("{NAME_LABEL} in ({AGENT_NAME},{IMAGES_NAME})"));
    read::each(connection, api(connection), agents, |pod: Pod| take(&mut cluster.pods, &pod, None)).await?;
    for (key, source) in &observe::kube_proxies(cluster) {
        let pods: Api<Pod> = Api::namespaced(connection.client.clone(), &key.namespace);
        let own = ListParams::default().labels(&source.selector);
        read::each(connection, pods, own, |pod| take(&mut cluster.pods, &pod, Some(key))).await?;
        let maps: Api<ConfigMap> = Api::namespaced(connection.client.clone(), &key.namespace);
        for name in &source.maps {
            let map = maps.get_opt(name).await;
            let map =
                map.map_err(|error| connection.problem("get", &read::resource::<ConfigMap>(), error))?;
            // A missing ConfigMap counts as empty, as for the operator.
            let files = map.as_ref().map(observe::configuration).unwrap_or_default();
            cluster.configurations.insert(Key::new(&*key.namespace, &**name), files);
        }
    }
    Ok(())
}

/// The facts for the admission of new pods.
async fn admission(connection: &Connection) -> Result<Admission, CommandError> {
    let mut found = Admission::default();
    let published = named(OBJECT_WEBHOOK_CONFIGURATION);
    read::each(connection, api(connection), published, |object: ValidatingWebhookConfiguration| {
        found.bundle = observe::bundle(&object);
    })
    .await?;
    let kinds = connection.client.list_api_group_resources(API_VERSION).await;
    let kinds = kinds.map_err(|error| connection.problem("list", API_VERSION, error))?;
    found.serves_policies = kinds.resources.iter().any(|kind| kind.name == "mutatingadmissionpolicies");
    Ok(found)
}

/// The objects that the operator owns as a whole.
async fn own(connection: &Connection, cluster: &mut Cluster) -> Result<(), CommandError> {
    for kind in OwnKind::ALL {
        let lists = match kind.found() {
            Found::ByName(names) => names.iter().map(|name| named(name)).collect(),
            Found::ByPrefix(_) if !cluster.admission.serves_policies => Vec::new(),
            Found::ByPrefix(_) => vec![ListParams::default()],
        };
        let known = cluster.own.entry(kind).or_default();
        for list in lists {
            read::each_of(connection, &kind.resource(), list, |object| {
                let key = observe::key(&object.metadata);
                if kind.found().includes(&key.name) {
                    known.insert(key, observe::written(&object));
                }
            })
            .await?;
        }
    }
    Ok(())
}

fn named(name: &str) -> ListParams {
    ListParams::default().fields(&format!("metadata.name={name}"))
}

/// The labels of namespaces, and pods with a sidecar.
async fn sidecars(connection: &Connection, cluster: &mut Cluster) -> Result<(), CommandError> {
    read::each_metadata(connection, api::<Namespace>(connection), |namespace| {
        let labels = namespace.metadata.labels.clone().unwrap_or_default();
        cluster.namespaces.insert(namespace.name_any(), Arc::new(labels));
    })
    .await?;
    let injected = ListParams::default().labels(observe::INJECTED_LABEL);
    read::each(connection, api(connection), injected, |pod: Pod| {
        if let Some(facts) = observe::sidecar_pod(&pod) {
            cluster.sidecars.insert(observe::key(&pod.metadata), facts);
        }
    })
    .await
}

/// All pods, of which entries with `redirect` may select any.
async fn redirects(connection: &Connection, cluster: &mut Cluster) -> Result<(), CommandError> {
    read::each(connection, api(connection), ListParams::default(), |pod: Pod| {
        if let Some(facts) = observe::redirect_pod(&pod) {
            cluster.redirects.insert(observe::key(&pod.metadata), facts);
        }
    })
    .await
}
