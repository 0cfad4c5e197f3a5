//! All IngressSourcePreserves and the labels of all namespaces, each kept current by a watch.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use isp_api::IngressSourcePreserve;
use isp_api::preserve::Via;
use isp_api::sidecar::{Labels, Rules};
use isp_client::{Collected, events, watching};
use isp_runtime::readiness::{Pending, Readiness};
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource};
use tokio::sync::watch;

/// The cached state.
#[derive(Debug, Default)]
struct Known {
    objects: BTreeMap<String, IngressSourcePreserve>,
    rules: Arc<Rules>,
    namespaces: BTreeMap<String, Arc<Labels>>,
}

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct Cache {
    own_namespace: String,
    known: watch::Sender<Known>,
}

impl Cache {
    pub(crate) fn new(own_namespace: String) -> Self {
        Self { own_namespace, known: watch::Sender::default() }
    }

    /// The sidecar rules of all objects.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.known.borrow().rules.clone()
    }

    /// The labels of a namespace.
    pub(crate) fn labels(&self, namespace: &str) -> Option<Arc<Labels>> {
        self.known.borrow().namespaces.get(namespace).cloned()
    }

    /// Waits until the namespace is known and returns its labels.
    pub(crate) async fn labels_to_come(&self, namespace: &str) -> Option<Arc<Labels>> {
        let mut known = self.known.subscribe();
        let known = known.wait_for(|known| known.namespaces.contains_key(namespace)).await.ok()?;
        known.namespaces.get(namespace).cloned()
    }

    /// All objects.
    pub(crate) fn objects(&self) -> Vec<IngressSourcePreserve> {
        self.known.borrow().objects.values().cloned().collect()
    }

    /// All namespaces with their labels.
    pub(crate) fn namespaces(&self) -> Vec<(String, Labels)> {
        let known = self.known.borrow();
        known.namespaces.iter().map(|(name, labels)| (name.clone(), Labels::clone(labels))).collect()
    }

    /// Runs the watches; never returns. The program is not ready until both lists are complete.
    pub(crate) fn run(
        self: Arc<Self>,
        client: Client,
        readiness: &Readiness,
    ) -> impl Future<Output = ()> + Send + use<> {
        let pending = (readiness.register("objects"), readiness.register("namespaces"));
        self.watch(client, pending)
    }

    async fn watch(self: Arc<Self>, client: Client, (objects, namespaces): (Pending, Pending)) {
        let of_objects = events::<IngressSourcePreserve>(Api::all(client.clone()), watching());
        let of_namespaces = events::<PartialObjectMeta<Namespace>>(Api::all(client), watching());
        tokio::join!(
            follow(of_objects, objects, slim, |all| self.take_objects(all)),
            follow(of_namespaces, namespaces, labels, |all| self.take_namespaces(all)),
        );
    }

    pub(crate) fn take_objects(&self, objects: &BTreeMap<String, IngressSourcePreserve>) {
        let rules = Rules::new(objects.values(), self.own_namespace.clone()).via(Via::Webhook);
        self.known.send_modify(|known| {
            known.objects.clone_from(objects);
            known.rules = Arc::new(rules);
        });
    }

    pub(crate) fn take_namespaces(&self, namespaces: &BTreeMap<String, Arc<Labels>>) {
        self.known.send_modify(|known| known.namespaces.clone_from(namespaces));
    }
}

/// The object without metadata and status that are not needed here.
fn slim(mut object: IngressSourcePreserve) -> IngressSourcePreserve {
    object.metadata.managed_fields = None;
    object.metadata.annotations = None;
    object.status = None;
    object
}

fn labels(namespace: PartialObjectMeta<Namespace>) -> Arc<Labels> {
    Arc::new(namespace.metadata.labels.unwrap_or_default())
}

/// Folds the events of a watch and passes on all objects after each change.
async fn follow<K: Resource, V>(
    events: impl Stream<Item = Event<K>>,
    pending: Pending,
    keep: impl Fn(K) -> V,
    take: impl Fn(&BTreeMap<String, V>),
) {
    let mut events = std::pin::pin!(events);
    let (mut collected, mut pending) = (Collected::default(), Some(pending));
    while let Some(event) = events.next().await {
        if collected.fold(event, &keep)
            && let Some(all) = collected.complete()
        {
            drop(pending.take());
            take(all);
        }
    }
}
