//! Names for completion, from the cluster or the kubeconfig. Errors have no reader.

use std::sync::mpsc::Sender;

use isp_api::IngressSourcePreserve;
use isp_plan::{Key, observe};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service};
use kube::api::ListParams;
use kube::config::Kubeconfig;
use kube::{Api, ResourceExt};

use super::Candidate;
use super::question::Noun;
use crate::cli::PlaceArgs;
use crate::connection::Connection;
use crate::error::CommandError;
use crate::read;
use crate::rules::Target;

/// The labels by which `kubectl get nodes` knows roles.
const ROLE: &str = "node-role.kubernetes.io/";

/// Sends the names that can complete the word, as they are found.
pub(super) fn find(place: &PlaceArgs, noun: Noun, word: &str, found: &Sender<Candidate>) {
    let take = |candidate| {
        // After the deadline nobody listens.
        let _ = found.send(candidate);
    };
    if noun == Noun::Context {
        return contexts(place).into_iter().for_each(take);
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let _ = runtime.block_on(async { names(&Connection::open(place).await?, noun, word, take).await });
}

fn contexts(place: &PlaceArgs) -> Vec<Candidate> {
    let read = match &place.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let contexts = read.map(|config| config.contexts).unwrap_or_default();
    let cluster = |named: &kube::config::NamedContext| {
        let context = named.context.as_ref();
        context.map(|context| format!("cluster {}", context.cluster)).unwrap_or_default()
    };
    contexts.iter().map(|named| Candidate::new(named.name.clone(), cluster(named))).collect()
}

async fn names(
    connection: &Connection,
    noun: Noun,
    word: &str,
    take: impl Fn(Candidate),
) -> Result<(), CommandError> {
    let client = || connection.client.clone();
    let everything = ListParams::default;
    match (noun, word.split_once('/')) {
        (Noun::Object, _) => {
            read::each(connection, Api::all(client()), everything(), |object: IngressSourcePreserve| {
                let phase = object.status.as_ref().and_then(|status| status.phase);
                take(Candidate::new(
                    object.name_any(),
                    phase.map(|phase| format!("{phase:?}")).unwrap_or_default(),
                ));
            })
            .await
        }
        (Noun::Node, _) => {
            read::each_metadata(connection, Api::<Node>::all(client()), |node| {
                take(Candidate::new(node.name_any(), roles(node.labels().keys())));
            })
            .await
        }
        (Noun::Service, _) => {
            read::each(connection, Api::all(client()), everything(), |service: Service| {
                let key = observe::key(&service.metadata);
                if observe::service(&service).exposed {
                    take(Candidate::new(key.to_string(), kind(&service)));
                }
            })
            .await
        }
        // A cluster may have many pods, so the namespace comes first.
        (Noun::Pod, Some((namespace, _))) => {
            read::each(connection, Api::namespaced(client(), namespace), everything(), |pod: Pod| {
                let key = Key::new(namespace, pod.name_any());
                if let Ok(target) = Target::of(&key, pod) {
                    take(Candidate::new(key.to_string(), format!("on node {}", target.node)));
                }
            })
            .await
        }
        (Noun::Namespace | Noun::Pod, _) => {
            let end = if noun == Noun::Pod { "/" } else { "" };
            read::each_metadata(connection, Api::<Namespace>::all(client()), |namespace| {
                take(Candidate::new(namespace.name_any() + end, ""));
            })
            .await
        }
        (Noun::Context, _) => Ok(()),
    }
}

fn roles<'a>(labels: impl Iterator<Item = &'a String>) -> String {
    let roles: Vec<&str> =
        labels.filter_map(|label| label.strip_prefix(ROLE)).filter(|role| !role.is_empty()).collect();
    roles.join(",")
}

/// The type, and the policy that decides whether the source IP is kept.
fn kind(service: &Service) -> String {
    let spec = service.spec.as_ref();
    let type_ = spec.and_then(|spec| spec.type_.as_deref()).unwrap_or("ClusterIP");
    let policy = spec.and_then(|spec| spec.external_traffic_policy.as_deref()).unwrap_or("Cluster");
    format!("{type_}, externalTrafficPolicy {policy}")
}
