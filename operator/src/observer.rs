//! Keeps the index current: one watch per kind, and for each kube-proxy a watch of its pods and a
//! read of its configuration. At rest the watches are the only requests to the API server.

mod configuration;
mod policies;

use std::collections::BTreeMap;

use futures_util::stream::{BoxStream, SelectAll};
use futures_util::{Stream, StreamExt};
use isp_api::names::{AGENT_NAME, IMAGES_NAME, NAME_LABEL, OBJECT_WEBHOOK_CONFIGURATION};
use isp_client::{Watched, events, watching};
use isp_plan::Key;
use isp_plan::action::Resource as Written;
use isp_plan::observe::{INJECTED_LABEL, KubeProxySource};
use isp_plan::own::{Found, OwnKind};
use isp_runtime::readiness::{Pending, Readiness};
use k8s_openapi::api::core::v1::Pod;
use kube::core::DynamicObject;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use tokio::sync::oneshot;
use tracing::info;

use crate::index::{AdmissionUpdate, Answer, Index, News, Update};

#[cfg(test)]
mod tests;

/// Page size of lists. Full objects are in memory one page at a time.
const PAGE: u32 = 100;
/// Smaller pages for agent reports, which have one entry per IngressSourcePreserve.
const PAGE_OF_REPORTS: u32 = 20;

/// See the module documentation.
pub(crate) struct Observer {
    client: Client,
    index: Index,
    updates: SelectAll<BoxStream<'static, Update>>,
    followed: BTreeMap<Key, Following>,
    /// Set while an object asks for sidecars. Dropping it ends the watches of namespaces and pods.
    sidecars: Option<[oneshot::Sender<()>; 2]>,
    /// Set while an object asks for a redirect. Dropping it ends the watch of all pods.
    redirects: Option<oneshot::Sender<()>>,
    /// Held until the kube-proxies have been read too.
    pending: Option<Pending>,
}

/// The reads of one kube-proxy. Dropping it ends them.
struct Following {
    source: KubeProxySource,
    _pods: oneshot::Sender<()>,
    _configuration: oneshot::Sender<()>,
}

impl Observer {
    pub(crate) fn new(client: Client, readiness: &Readiness) -> Self {
        let mut updates = SelectAll::new();
        let all = |client: &Client| (client.clone(), config());
        updates.push(watch_all(all(&client), Update::Objects));
        updates.push(watch_all(all(&client), Update::Services));
        updates.push(watch_all(all(&client), Update::Slices));
        updates.push(watch_all(all(&client), Update::Nodes));
        let reports = config().page_size(PAGE_OF_REPORTS);
        updates.push(watch_all((client.clone(), reports), Update::Reports));
        updates.push(watch_all(all(&client), Update::DaemonSets));
        let agents = config().labels(&format!("{NAME_LABEL} in ({AGENT_NAME},{IMAGES_NAME})"));
        updates.push(watch_all((client.clone(), agents), Update::AgentPods));
        let published = config().fields(&format!("metadata.name={OBJECT_WEBHOOK_CONFIGURATION}"));
        updates.push(watch_admission(client.clone(), published, AdmissionUpdate::Published));
        for kind in OwnKind::ALL {
            // The API server may not serve kinds found by prefix; `policies` watches those.
            let Found::ByName(names) = kind.found() else { continue };
            updates.extend(names.iter().map(|name| watch_own(&client, kind, Some(name))));
        }
        updates.push(policies::watch(client.clone()));
        Self {
            sidecars: None,
            redirects: None,
            index: Index::new(readiness),
            updates,
            followed: BTreeMap::new(),
            pending: Some(readiness.register("kube-proxy")),
            client,
        }
    }

    /// The current index.
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// Waits for the next update and folds it into the index. Cancel-safe.
    pub(crate) async fn next(&mut self) -> News {
        let Some(update) = self.updates.next().await else {
            // Watches never end.
            return std::future::pending().await;
        };
        let about_daemon_sets = matches!(update, Update::DaemonSets(_));
        let about_objects = matches!(update, Update::Objects(_));
        let news = self.index.take(update);
        self.follow(about_objects, about_daemon_sets, news);
        if self.pending.is_some() && self.index.is_whole() {
            self.pending = None;
        }
        news
    }

    /// Folds the response to a write into the index.
    pub(crate) fn take_answer(&mut self, answer: Answer) -> News {
        let about_daemon_sets =
            matches!(answer, Answer::Written(Written::DaemonSet, _) | Answer::Gone { .. });
        let about_objects = matches!(answer, Answer::Written(Written::Preserve | Written::PreserveStatus, _));
        let news = self.index.take_answer(answer);
        // The response may include someone else's concurrent change. The watch event that follows
        // is then no news.
        self.follow(about_objects, about_daemon_sets, news);
        news
    }

    /// Starts and stops watches that depend on the objects and the DaemonSets.
    fn follow(&mut self, about_objects: bool, about_daemon_sets: bool, news: News) {
        if about_objects && news == News::Facts {
            self.follow_sidecars();
            self.follow_redirects();
        }
        if (about_objects || about_daemon_sets) && news == News::Facts {
            self.follow_kube_proxies();
        }
    }

    fn follow_kube_proxies(&mut self) {
        let sources = self.index.sources();
        let gone: Vec<Key> = self.followed.keys().filter(|set| !sources.contains_key(set)).cloned().collect();
        for set in gone {
            info!(daemon_set = %set, "this kube-proxy was deleted");
            self.followed.remove(&set);
            self.index.forget(&set);
        }
        for (set, source) in sources {
            let before = self.followed.remove(&set);
            let following = match before {
                Some(before) if before.source == source => before,
                Some(before) if before.source.selector == source.selector => {
                    Following { _configuration: self.read_configuration(&set, &source), source, ..before }
                }
                _ => {
                    info!(daemon_set = %set, selector = source.selector, "watching this kube-proxy");
                    self.index.follow(set.clone());
                    Following {
                        _pods: self.watch_pods(&set, &source),
                        _configuration: self.read_configuration(&set, &source),
                        source,
                    }
                }
            };
            self.followed.insert(set, following);
        }
    }

    fn follow_sidecars(&mut self) {
        let asks = self.index.asks_for_sidecars();
        if asks && self.sidecars.is_none() {
            self.index.follow_sidecars();
            let client = self.client.clone();
            let namespaces = watch_admission(client.clone(), config(), AdmissionUpdate::Namespaces);
            let injected = config().labels(INJECTED_LABEL);
            let pods = watch_admission(client, injected, AdmissionUpdate::Pods);
            self.sidecars = Some([self.add(namespaces), self.add(pods)]);
        } else if !asks && self.sidecars.take().is_some() {
            self.index.forget_sidecars();
        }
    }

    fn follow_redirects(&mut self) {
        let asks = self.index.asks_for_redirects();
        if asks && self.redirects.is_none() {
            self.index.follow_redirects();
            let pods = watch_admission(self.client.clone(), config(), AdmissionUpdate::AllPods);
            self.redirects = Some(self.add(pods));
        } else if !asks && self.redirects.take().is_some() {
            self.index.forget_redirects();
        }
    }

    fn watch_pods(&mut self, set: &Key, source: &KubeProxySource) -> oneshot::Sender<()> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &set.namespace);
        let set = set.clone();
        let pods = events(api, config().labels(&source.selector));
        self.add(pods.map(move |event| Update::KubeProxyPods(set.clone(), Box::new(event))))
    }

    fn read_configuration(&mut self, set: &Key, source: &KubeProxySource) -> oneshot::Sender<()> {
        let set = set.clone();
        let read = configuration::read(self.client.clone(), set.namespace.clone(), source.maps.clone());
        self.add(read.map(move |found| Update::Configurations(set.clone(), found)))
    }

    /// Adds a stream of updates that ends when the returned sender is dropped.
    fn add(&mut self, updates: impl Stream<Item = Update> + Send + 'static) -> oneshot::Sender<()> {
        let (sender, dropped) = oneshot::channel();
        self.updates.push(updates.take_until(dropped).boxed());
        sender
    }
}

/// The watch configuration used for all kinds.
pub(crate) fn config() -> watcher::Config {
    watching().page_size(PAGE)
}

fn watch_all<K>(
    (client, config): (Client, watcher::Config),
    update: fn(Box<watcher::Event<K>>) -> Update,
) -> BoxStream<'static, Update>
where
    K: Watched + Resource<DynamicType = ()>,
{
    events(Api::all(client), config).map(move |event| update(Box::new(event))).boxed()
}

/// Watches the objects of a kind that the operator fully owns: the one with this name, or all of
/// the kind.
fn watch_own(client: &Client, kind: OwnKind, name: Option<&'static str>) -> BoxStream<'static, Update> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
    let config = match name {
        Some(name) => config().fields(&format!("metadata.name={name}")),
        // Includes foreign objects, since one may already have a name that the operator needs.
        None => config(),
    };
    events(api, config).map(move |event| Update::Own(kind, name, Box::new(event))).boxed()
}

fn watch_admission<K>(
    client: Client,
    config: watcher::Config,
    update: fn(watcher::Event<K>) -> AdmissionUpdate,
) -> BoxStream<'static, Update>
where
    K: Watched + Resource<DynamicType = ()>,
{
    events(Api::all(client), config).map(move |event| Update::Admission(Box::new(update(event)))).boxed()
}
