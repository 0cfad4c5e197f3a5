//! The known cluster: the events of all watches, folded into one [`Cluster`]. Full objects are
//! reduced to facts here and dropped at once.
//!
//! The index has no connection. `observer` feeds it. `reconcile` plans from it and passes it the
//! responses to its own writes, so that the next plan already sees them.

mod admission;
mod endpoints;
mod fact;
mod kube_proxy;
mod own;
mod reading;

use std::collections::BTreeMap;
use std::sync::Arc;

use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_plan::action::{Resource, Target};
use isp_plan::observe::{self, KubeProxySource};
use isp_plan::own::OwnKind;
use isp_plan::{Cluster, Key, cluster};
use isp_runtime::readiness::Readiness;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::core::DynamicObject;
use kube::runtime::watcher::Event;

pub(crate) use self::admission::AdmissionUpdate;
use self::endpoints::Endpoints;
pub(crate) use self::kube_proxy::Configurations;
use self::kube_proxy::Followed;
use self::reading::Reading;

#[cfg(test)]
mod tests;

/// An event of one of the watches.
pub(crate) enum Update {
    Objects(Box<Event<IngressSourcePreserve>>),
    Services(Box<Event<Service>>),
    Slices(Box<Event<EndpointSlice>>),
    Nodes(Box<Event<Node>>),
    Reports(Box<Event<IngressSourceNode>>),
    DaemonSets(Box<Event<DaemonSet>>),
    /// Pods of the agents.
    AgentPods(Box<Event<Pod>>),
    /// Pods of this kube-proxy.
    KubeProxyPods(Key, Box<Event<Pod>>),
    /// The configuration of this kube-proxy.
    Configurations(Key, Configurations),
    /// Admission configuration, and the namespaces and pods with sidecars.
    Admission(Box<AdmissionUpdate>),
    /// Objects of this kind that the operator fully owns; with a name if the watch selects a single
    /// object.
    Own(OwnKind, Option<&'static str>, Box<Event<DynamicObject>>),
}

/// The API server's response to a write.
pub(crate) enum Answer {
    /// The object after the write.
    Written(Resource, Box<DynamicObject>),
    /// The object was deleted.
    Gone { target: Target, uid: String },
}

/// How much an update changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum News {
    Nothing,
    /// Only the resource version changed, none of the facts.
    Version,
    Facts,
}

/// See the module documentation.
pub(crate) struct Index {
    cluster: Cluster,
    objects: Reading<String, IngressSourcePreserve>,
    services: Reading<Key, cluster::Service>,
    endpoints: Endpoints,
    nodes: Reading<String, cluster::Node>,
    reports: Reading<String, cluster::Report>,
    daemon_sets: Reading<Key, cluster::DaemonSet>,
    agent_pods: Reading<Key, cluster::Pod>,
    kube_proxies: BTreeMap<Key, Followed>,
    admission: admission::Readings,
    own: own::Readings,
    /// Acknowledgements, shared between reports to save memory.
    acknowledged: Vec<Arc<cluster::Acknowledgements>>,
}

impl Index {
    /// An empty index; `readiness` waits for each kind to be listed.
    pub(crate) fn new(readiness: &Readiness) -> Self {
        let pending = |name| Some(readiness.register(name));
        Self {
            cluster: Cluster::default(),
            objects: Reading::new(pending("ingresssourcepreserves")),
            services: Reading::new(pending("services")),
            endpoints: Endpoints::new(pending("endpointslices")),
            nodes: Reading::new(pending("nodes")),
            reports: Reading::new(pending("ingresssourcenodes")),
            daemon_sets: Reading::new(pending("daemonsets")),
            agent_pods: Reading::new(pending("pods")),
            kube_proxies: BTreeMap::new(),
            admission: admission::Readings::new(readiness),
            own: own::Readings::new(readiness),
            acknowledged: Vec::new(),
        }
    }

    /// The known cluster. It is complete only when `is_whole` returns true.
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Whether every kind has been listed, so that an object not in the index does not exist.
    pub(crate) fn is_whole(&self) -> bool {
        self.missing().is_empty()
    }

    /// The kinds that have not been listed yet.
    pub(crate) fn missing(&self) -> Vec<String> {
        let kinds = [
            ("ingresssourcepreserves", self.objects.is_whole()),
            ("services", self.services.is_whole()),
            ("endpointslices", self.endpoints.is_whole()),
            ("nodes", self.nodes.is_whole()),
            ("ingresssourcenodes", self.reports.is_whole()),
            ("daemonsets", self.daemon_sets.is_whole()),
            ("pods of the agents", self.agent_pods.is_whole()),
        ];
        let kinds = kinds.into_iter().filter(|(_, whole)| !whole).map(|(name, _)| name.to_owned());
        let proxies = self.kube_proxies.iter().filter(|(_, followed)| !followed.is_whole());
        kinds
            .chain(self.admission.missing().map(str::to_owned))
            .chain(self.own.missing(&self.cluster).map(str::to_owned))
            .chain(proxies.map(|(set, _)| format!("pods and configuration of {set}")))
            .collect()
    }

    /// Folds in an update.
    pub(crate) fn take(&mut self, update: Update) -> News {
        let cluster = &mut self.cluster;
        match update {
            Update::Objects(event) => {
                self.objects
                    .take(&mut cluster.objects, *event, ResourceExt::name_any, |object| Some(slim(object)))
            }
            Update::Services(event) => {
                self.services.take(&mut cluster.services, *event, service_key, |object| {
                    Some(observe::service(&object))
                })
            }
            Update::Slices(event) => self.endpoints.take(&mut cluster.endpoints, *event),
            Update::Nodes(event) => {
                self.nodes.take(&mut cluster.nodes, *event, ResourceExt::name_any, |object| {
                    Some(observe::node(&object))
                })
            }
            Update::Reports(event) => {
                let known = &mut self.acknowledged;
                self.reports.take(&mut cluster.reports, *event, ResourceExt::name_any, |object| {
                    Some(observe::report(&object, known))
                })
            }
            Update::DaemonSets(event) => {
                self.daemon_sets.take(&mut cluster.daemon_sets, *event, daemon_set_key, |object| {
                    observe::daemon_set(&object)
                })
            }
            Update::AgentPods(event) => {
                let others = &self.kube_proxies;
                self.agent_pods.take_among(
                    &mut cluster.pods,
                    *event,
                    pod_key,
                    |object| observe::pod(&object),
                    |_, pod| !others.contains_key(&pod.daemon_set),
                )
            }
            Update::KubeProxyPods(set, event) => {
                let Some(followed) = self.kube_proxies.get_mut(&set) else { return News::Nothing };
                followed.take_pods(&set, &mut cluster.pods, *event)
            }
            Update::Configurations(set, configurations) => {
                let Some(followed) = self.kube_proxies.get_mut(&set) else { return News::Nothing };
                if followed.configurations.as_ref() == Some(&configurations) {
                    return News::Nothing;
                }
                followed.configurations = Some(configurations);
                self.gather_configurations();
                News::Facts
            }
            Update::Admission(update) => self.admission.take(cluster, *update),
            Update::Own(kind, name, event) => self.own.take(cluster, kind, name, *event),
        }
    }

    /// Folds in the response to a write, unless the watch has already reported that version or a
    /// newer one. A response that cannot be parsed is ignored; the watch will report the object.
    pub(crate) fn take_answer(&mut self, answer: Answer) -> News {
        match answer {
            Answer::Written(resource, object) => {
                self.take_written(resource, *object).unwrap_or(News::Nothing)
            }
            Answer::Gone { target: Target { resource, key }, uid } => self.take_gone(resource, &key, &uid),
        }
    }

    fn take_written(&mut self, resource: Resource, object: DynamicObject) -> Option<News> {
        let (cluster, key) = (&mut self.cluster, observe::key(&object.metadata));
        Some(match resource {
            Resource::Preserve | Resource::PreserveStatus => {
                let object: IngressSourcePreserve = object.try_parse().ok()?;
                // The response to removing the last finalizer contains the object, although it is
                // now deleted.
                let gone = object.metadata.deletion_timestamp.is_some() && object.finalizers().is_empty();
                self.objects.take_answer(&mut cluster.objects, key.name, slim(object), gone)
            }
            Resource::Service => {
                let fact = observe::service(&object.try_parse().ok()?);
                self.services.take_answer(&mut cluster.services, key, fact, false)
            }
            Resource::Node => {
                let fact = observe::node(&object.try_parse().ok()?);
                self.nodes.take_answer(&mut cluster.nodes, key.name, fact, false)
            }
            Resource::DaemonSet => {
                let fact = observe::daemon_set(&object.try_parse().ok()?)?;
                self.daemon_sets.take_answer(&mut cluster.daemon_sets, key, fact, false)
            }
            Resource::NodeReport => {
                let fact = observe::report(&object.try_parse().ok()?, &mut self.acknowledged);
                self.reports.take_answer(&mut cluster.reports, key.name, fact, false)
            }
            Resource::Own(kind) => self.own.take_answer(cluster, kind, &object),
        })
    }

    fn take_gone(&mut self, resource: Resource, key: &Key, uid: &str) -> News {
        let cluster = &mut self.cluster;
        let is_it = |identity: &cluster::Identity| identity.uid == uid;
        match resource {
            Resource::Preserve | Resource::PreserveStatus => {
                reading::remove(&mut cluster.objects, &key.name, |object| {
                    object.metadata.uid.as_deref() == Some(uid)
                })
            }
            Resource::Service => {
                reading::remove(&mut cluster.services, key, |service| is_it(&service.identity))
            }
            Resource::Node => reading::remove(&mut cluster.nodes, &key.name, |node| is_it(&node.identity)),
            Resource::DaemonSet => reading::remove(&mut cluster.daemon_sets, key, |set| is_it(&set.identity)),
            Resource::NodeReport => {
                reading::remove(&mut cluster.reports, &key.name, |report| is_it(&report.identity))
            }
            Resource::Own(kind) => {
                let known = cluster.own.entry(kind).or_default();
                reading::remove(known, key, |written| is_it(&written.identity))
            }
        }
    }

    /// The known resource version of an object.
    pub(crate) fn version(&self, Target { resource, key }: &Target) -> Option<&str> {
        let cluster = &self.cluster;
        match *resource {
            Resource::Service => cluster.services.get(key).map(|service| &*service.identity.version),
            Resource::Node => cluster.nodes.get(&key.name).map(|node| &*node.identity.version),
            Resource::DaemonSet => cluster.daemon_sets.get(key).map(|set| &*set.identity.version),
            Resource::NodeReport => cluster.reports.get(&key.name).map(|report| &*report.identity.version),
            Resource::Preserve | Resource::PreserveStatus => {
                cluster.objects.get(&key.name)?.metadata.resource_version.as_deref()
            }
            Resource::Own(kind) => {
                let written = cluster.own.get(&kind)?.get(key);
                written.map(|written| &*written.identity.version)
            }
        }
    }

    /// Whether any object asks for sidecars, which requires watching namespaces and pods.
    pub(crate) fn asks_for_sidecars(&self) -> bool {
        self.cluster.objects.values().any(|object| !object.spec.sidecars.is_empty())
    }

    /// Waits for namespaces and pods to be listed.
    pub(crate) fn follow_sidecars(&mut self) {
        self.admission.follow();
    }

    /// Drops namespaces and pods; no object asks for sidecars.
    pub(crate) fn forget_sidecars(&mut self) {
        self.admission.forget(&mut self.cluster);
    }

    /// Whether any object asks for a redirect, which requires watching all pods: one that was
    /// missed has nothing that tells it from others.
    pub(crate) fn asks_for_redirects(&self) -> bool {
        let entries = self.cluster.objects.values().flat_map(|object| &object.spec.sidecars);
        entries.into_iter().any(|entry| entry.redirect.is_some())
    }

    /// Waits for all pods to be listed.
    pub(crate) fn follow_redirects(&mut self) {
        self.admission.follow_redirects();
    }

    /// Drops these pods; no object asks for a redirect.
    pub(crate) fn forget_redirects(&mut self) {
        self.admission.forget_redirects(&mut self.cluster);
    }

    /// The kube-proxies, and what to read of each besides its DaemonSet.
    pub(crate) fn sources(&self) -> BTreeMap<Key, KubeProxySource> {
        observe::kube_proxies(&self.cluster)
    }

    /// Waits for the pods and the configuration of a kube-proxy. Its known pods stay until they are
    /// listed again.
    pub(crate) fn follow(&mut self, set: Key) {
        self.kube_proxies.entry(set).or_default().begin();
    }

    /// Drops the facts of a kube-proxy that no longer exists.
    pub(crate) fn forget(&mut self, set: &Key) {
        self.kube_proxies.remove(set);
        self.cluster.pods.retain(|_, pod| pod.daemon_set != *set);
        self.gather_configurations();
    }

    fn gather_configurations(&mut self) {
        let all = self.kube_proxies.values().filter_map(|followed| followed.configurations.as_ref());
        self.cluster.configurations =
            all.flatten().map(|(map, files)| (map.clone(), files.clone())).collect();
    }
}

/// The object without managed fields and the last-applied annotation.
fn slim(mut object: IngressSourcePreserve) -> IngressSourcePreserve {
    object.metadata.managed_fields = None;
    if let Some(annotations) = &mut object.metadata.annotations {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    object
}

fn service_key(object: &Service) -> Key {
    observe::key(&object.metadata)
}

fn daemon_set_key(object: &DaemonSet) -> Key {
    observe::key(&object.metadata)
}

fn pod_key(object: &Pod) -> Key {
    observe::key(&object.metadata)
}
