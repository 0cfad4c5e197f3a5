//! The facts of a dump, as far as a plan uses them: the same as `snapshot` reads from a cluster.

mod lacking;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use isp_api::IngressSourcePreserve;
use isp_api::names::{
    AGENT_NAME, IMAGES_NAME, NAME_LABEL, OBJECT_WEBHOOK_CONFIGURATION, OPERATOR_FIELD_MANAGER,
};
use isp_plan::build::pod_policy::API_VERSION;
use isp_plan::cluster::{Acknowledgements, Admission, RedirectPod, SidecarPod};
use isp_plan::own::OwnKind;
use isp_plan::{Cluster, Key, observe};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::core::DynamicObject;

use self::lacking::Inventory;
use super::image;
use crate::dump::{self, Dumped};
use crate::error::CommandError;

#[cfg(test)]
mod tests;

/// The objects of a dump, as facts.
#[derive(Default)]
pub(super) struct Contents {
    /// Everything that does not depend on the objects of the file.
    cluster: Cluster,
    pods: BTreeMap<Key, PodFacts>,
    configurations: BTreeMap<Key, BTreeMap<String, String>>,
    namespaces: BTreeMap<String, Arc<BTreeMap<String, String>>>,
    /// The agents' image, by the namespace of the operator.
    images: BTreeMap<String, String>,
    inventory: Inventory,
    acknowledgements: Vec<Arc<Acknowledgements>>,
}

/// What a plan may need of a pod.
struct PodFacts {
    /// Whether it has the label of agents or of image pods.
    labelled: bool,
    injected: bool,
    facts: Option<isp_plan::cluster::Pod>,
    sidecar: Option<SidecarPod>,
    redirect: Option<RedirectPod>,
}

/// Reads a dump. The time is the latest one in it.
pub(super) fn read(path: &Path) -> Result<(Contents, Timestamp), CommandError> {
    let mut contents = Contents::default();
    let taken = dump::each(path, "kubectl isp plan --help", |object| contents.take(object))?;
    Ok((contents, taken))
}

impl Contents {
    /// The existing objects by name.
    pub(super) fn objects(&self) -> BTreeMap<String, IngressSourcePreserve> {
        self.cluster.objects.clone()
    }

    /// The agents' image of the operator in this namespace.
    pub(super) fn image(&self, namespace: &str, cluster: &Cluster) -> String {
        self.images.get(namespace).cloned().unwrap_or_else(|| image::without_operator(cluster))
    }

    /// The facts for these objects, and notes on what the plan assumes. An error names everything
    /// that the dump lacks and the plan depends on.
    pub(super) fn cluster(
        &self,
        path: &Path,
        objects: BTreeMap<String, IngressSourcePreserve>,
    ) -> Result<(Cluster, Vec<String>), CommandError> {
        let mut cluster = Cluster { objects, ..self.cluster.clone() };
        let proxies = observe::kube_proxies(&cluster);
        let mut maps = BTreeSet::new();
        for (set, source) in &proxies {
            maps.extend(source.maps.iter().map(|name| Key::new(&*set.namespace, &**name)));
        }
        let missing: Vec<Key> =
            maps.iter().filter(|key| !self.configurations.contains_key(key)).cloned().collect();
        let notes = self.inventory.judge(path, &cluster, &missing)?;
        let known = maps.into_iter().filter_map(|key| self.configurations.get_key_value(&key));
        cluster.configurations = known.map(|(key, files)| (key.clone(), files.clone())).collect();
        let entries = || cluster.objects.values().flat_map(|object| &object.spec.sidecars);
        let (sidecars, redirects) =
            (entries().next().is_some(), entries().any(|entry| entry.redirect.is_some()));
        for (key, pod) in &self.pods {
            let of_proxy =
                |facts: &&isp_plan::cluster::Pod| pod.labelled || proxies.contains_key(&facts.daemon_set);
            cluster.pods.extend(pod.facts.as_ref().filter(of_proxy).map(|pod| (key.clone(), pod.clone())));
            let sidecar = pod.sidecar.as_ref().filter(|_| sidecars && pod.injected);
            cluster.sidecars.extend(sidecar.map(|pod| (key.clone(), pod.clone())));
            let redirect = pod.redirect.as_ref().filter(|_| redirects);
            cluster.redirects.extend(redirect.map(|pod| (key.clone(), pod.clone())));
        }
        if sidecars {
            cluster.namespaces.clone_from(&self.namespaces);
        }
        Ok((cluster, notes))
    }

    fn take(&mut self, mut object: Dumped<'_>) -> Result<(), CommandError> {
        self.inventory.take(&object);
        if let Some(kind) = own_kind(&object) {
            return self.take_own(kind, object);
        }
        let cluster = &mut self.cluster;
        match (object.group(), object.kind.as_str()) {
            ("sourcepreserve.io", "IngressSourcePreserve") => {
                let mut object: IngressSourcePreserve = object.parse()?;
                object.metadata.managed_fields = None;
                cluster.objects.insert(object.name_any(), object);
            }
            ("sourcepreserve.io", "IngressSourceNode") => {
                let report: isp_api::IngressSourceNode = object.parse()?;
                let facts = observe::report(&report, &mut self.acknowledgements);
                cluster.reports.insert(report.name_any(), facts);
            }
            ("", "Service") => {
                let service: Service = object.parse()?;
                cluster.services.insert(observe::key(&service.metadata), observe::service(&service));
            }
            ("", "Node") => {
                let node: Node = object.parse()?;
                cluster.nodes.insert(node.name_any(), observe::node(&node));
            }
            ("apps", "DaemonSet") => {
                let set: DaemonSet = object.parse()?;
                let facts = observe::daemon_set(&set);
                cluster.daemon_sets.extend(facts.map(|facts| (observe::key(&set.metadata), facts)));
            }
            ("discovery.k8s.io", "EndpointSlice") => {
                let slice: EndpointSlice = object.parse()?;
                if let Some((service, ready)) = observe::endpoint_slice(&slice) {
                    cluster.endpoints.entry(service).or_default().insert(slice.name_any(), ready);
                }
            }
            ("", "Pod") => self.take_pod(&object.parse()?),
            ("", "ConfigMap") => {
                let map: ConfigMap = object.parse()?;
                self.configurations.insert(observe::key(&map.metadata), observe::configuration(&map));
            }
            ("", "Namespace") => {
                let namespace: Namespace = object.parse()?;
                let labels = namespace.metadata.labels.clone().unwrap_or_default();
                self.namespaces.insert(namespace.name_any(), Arc::new(labels));
            }
            ("apps", "Deployment") if object.name() == OPERATOR_FIELD_MANAGER => {
                let operator: Deployment = object.parse()?;
                let namespace = operator.namespace().unwrap_or_default();
                self.images.extend(image::of_operator(&operator).map(|image| (namespace, image)));
            }
            ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration")
                if object.name() == OBJECT_WEBHOOK_CONFIGURATION =>
            {
                cluster.admission.bundle = observe::bundle(&object.parse()?);
            }
            (_, "APIResourceList") if object.value["groupVersion"] == API_VERSION => {
                let kinds = object.value["resources"].as_array().into_iter().flatten();
                let mut names = kinds.map(|kind| &kind["name"]);
                cluster.admission.serves_policies = names.any(|name| name == "mutatingadmissionpolicies");
            }
            _ => {}
        }
        Ok(())
    }

    fn take_own(&mut self, kind: OwnKind, mut object: Dumped<'_>) -> Result<(), CommandError> {
        if matches!(kind, OwnKind::PodPolicy | OwnKind::PodPolicyBinding) {
            // An object of the kind proves that the API server serves it.
            let Admission { serves_policies, .. } = &mut self.cluster.admission;
            *serves_policies = true;
        }
        if kind.found().includes(&object.name()) {
            let object: DynamicObject = object.parse()?;
            let known = self.cluster.own.entry(kind).or_default();
            known.insert(observe::key(&object.metadata), observe::written(&object));
        }
        Ok(())
    }

    fn take_pod(&mut self, pod: &Pod) {
        let label = pod.labels().get(NAME_LABEL).map(String::as_str);
        let facts = PodFacts {
            labelled: matches!(label, Some(AGENT_NAME | IMAGES_NAME)),
            injected: pod.labels().contains_key(observe::INJECTED_LABEL),
            facts: observe::pod(pod),
            sidecar: observe::sidecar_pod(pod),
            redirect: observe::redirect_pod(pod),
        };
        self.pods.insert(observe::key(&pod.metadata), facts);
    }
}

fn own_kind(object: &Dumped<'_>) -> Option<OwnKind> {
    OwnKind::ALL.into_iter().find(|kind| {
        let resource = kind.resource();
        (resource.api_version, resource.kind.as_str()) == (object.api_version.clone(), object.kind.as_str())
    })
}
