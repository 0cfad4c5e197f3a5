//! What a dump lacks. A plan does not guess: where the missing part decides what the operator does,
//! the error names the command that adds it. Where the plan can go on, a note says what it assumes.

use std::collections::BTreeSet;
use std::path::Path;

use isp_api::names::{AGENT_NAME, AGENT_POOL_LABEL, IMAGES_NAME, NAME_LABEL, ORIGINAL_ANNOTATION};
use isp_api::preserve::Via;
use isp_plan::build::pod_policy::API_VERSION;
use isp_plan::{Cluster, Key};

use crate::dump::Dumped;
use crate::error::CommandError;

/// The groups of all kinds that a plan uses.
const GROUPS: [&str; 6] = [
    "",
    "apps",
    "discovery.k8s.io",
    "rbac.authorization.k8s.io",
    "admissionregistration.k8s.io",
    "sourcepreserve.io",
];

/// Kinds that every cluster has and every plan uses: the kind, and its plural for kubectl.
const ALWAYS: [(&str, &str); 4] =
    [("Service", "services"), ("EndpointSlice", "endpointslices"), ("Node", "nodes"), ("Pod", "pods")];

/// Kinds of the agents' account. Every cluster has some, but only where the operator has begun do
/// they decide what it does.
const ACCOUNT: [(&str, &str); 3] = [
    ("ServiceAccount", "serviceaccounts"),
    ("ClusterRole", "clusterroles"),
    ("ClusterRoleBinding", "clusterrolebindings"),
];

/// Kinds of which a cluster may have none.
const PERHAPS: [(&str, &str); 2] = [
    ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
];

/// Kinds whose field managers a plan depends on.
const MANAGED: [(&str, &str); 3] = [("Service", "services"), ("Node", "nodes"), ("DaemonSet", "daemonsets")];

/// The kinds in a dump, and their shape.
#[derive(Default)]
pub(super) struct Inventory {
    kinds: BTreeSet<String>,
    /// Kinds with an object that has no managedFields, as `kubectl get` prints it by default.
    unmanaged: BTreeSet<String>,
    /// Whether the operator has changed something.
    begun: bool,
    /// Whether the dump tells which kinds of admission the API server serves.
    serving: bool,
}

impl Inventory {
    pub(super) fn take(&mut self, object: &Dumped<'_>) {
        // Other projects have kinds of the same names.
        if !GROUPS.contains(&object.group()) {
            return;
        }
        let metadata = &object.value["metadata"];
        let kind = object.kind.as_str();
        if metadata["managedFields"].is_null() {
            self.unmanaged.insert(kind.to_owned());
        }
        let name = metadata["labels"][NAME_LABEL].as_str();
        self.begun |= match kind {
            "Node" => metadata["labels"].get(AGENT_POOL_LABEL).is_some(),
            "Service" => metadata["annotations"].get(ORIGINAL_ANNOTATION).is_some(),
            "DaemonSet" => {
                let changed = metadata["annotations"].get(ORIGINAL_ANNOTATION).is_some();
                changed || matches!(name, Some(AGENT_NAME | IMAGES_NAME))
            }
            _ => false,
        };
        self.serving |= kind == "APIResourceList" && object.value["groupVersion"] == API_VERSION;
        self.kinds.insert(kind.to_owned());
    }

    /// Notes on what a plan of these objects assumes, or everything that it lacks. `maps` are the
    /// `ConfigMap`s that a kube-proxy mounts and the dump does not have.
    pub(super) fn judge(
        &self,
        path: &Path,
        cluster: &Cluster,
        maps: &[Key],
    ) -> Result<Vec<String>, CommandError> {
        let entries = || cluster.objects.values().flat_map(|object| &object.spec.sidecars);
        let lists = |kind: &str| self.kinds.contains(kind);
        let mut plurals: Vec<&str> = Vec::new();
        let mut add = |kinds: &[(&str, &'static str)], lacks: &dyn Fn(&str) -> bool| {
            let lacking = kinds.iter().filter(|(kind, _)| lacks(kind)).map(|(_, plural)| *plural);
            plurals.extend(lacking.collect::<Vec<_>>());
        };
        add(&ALWAYS, &|kind| !lists(kind));
        if entries().next().is_some() {
            add(&[("Namespace", "namespaces")], &|kind| !lists(kind));
        }
        if self.begun {
            add(&ACCOUNT, &|kind| !lists(kind) || self.unmanaged.contains(kind));
            add(&MANAGED, &|kind| self.unmanaged.contains(kind));
        }
        let mut commands = Vec::new();
        let place = path.display();
        if !plurals.is_empty() {
            let kinds = plurals.join(",");
            commands
                .push(format!("kubectl get {kinds} -A --show-managed-fields -o yaml > {place}/more.yaml"));
        }
        commands.extend(maps.iter().map(|Key { namespace, name }| {
            format!("kubectl get configmap -n {namespace} {name} -o yaml > {place}/{name}.yaml")
        }));
        let by_policy = entries().any(|entry| entry.via == Via::Policy);
        if by_policy && !self.serving && !cluster.admission.serves_policies {
            commands.push(format!("kubectl get --raw /apis/{API_VERSION} > {place}/admission.json"));
        }
        if commands.is_empty() {
            return Ok(self.notes(entries().any(|entry| entry.via == Via::Webhook), by_policy));
        }
        let commands: Vec<String> = commands.iter().map(|command| format!("`{command}`")).collect();
        Err(CommandError::DumpLacks { dump: path.to_owned(), commands: commands.join(" and ") })
    }

    fn notes(&self, by_webhook: bool, by_policy: bool) -> Vec<String> {
        let mut notes = Vec::new();
        let mut assume = |kind: &str, plural: &str, flags: &str| {
            if !self.kinds.contains(kind) {
                notes.push(format!(
                    "the dump has no {kind}: the plan assumes that the cluster has none; if it has, add the output of \
                     `kubectl get {plural}{flags} --show-managed-fields -o yaml`"
                ));
            }
        };
        assume("DaemonSet", "daemonsets", " -A");
        if self.begun {
            assume("IngressSourceNode", "ingresssourcenodes", "");
            for (kind, plural) in PERHAPS {
                assume(kind, plural, "");
            }
        }
        if by_webhook {
            assume("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "");
            assume("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "");
        }
        if by_policy && self.begun {
            assume("MutatingAdmissionPolicy", "mutatingadmissionpolicies", "");
            assume("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", "");
        }
        if MANAGED.iter().any(|(kind, _)| self.unmanaged.contains(*kind)) {
            notes.push(
                "the dump was taken without --show-managed-fields: conflicts with other field managers are not foreseen"
                    .to_owned(),
            );
        }
        notes
    }
}
