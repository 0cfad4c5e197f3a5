//! The command lines of the control plane's programs, for labs and for control planes on loopback.
//! Pure.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::audit;
use crate::credentials::Credentials;
use crate::provision::{Programs, ProvisionError};
use crate::topology::{Families, POD_RANGE, SERVICE_RANGE};

/// Settings of the Go runtime for all long-running programs: they collect garbage less often. That
/// takes memory and saves CPU time, which a machine with several clusters lacks.
pub(crate) const RUNTIME: [(&str, &str); 1] = [("GOGC", "400")];

/// One long-running program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Component {
    /// The name in status and logs, such as `kube-apiserver` or `edge-1/kubelet`.
    pub(crate) name: String,
    /// The node whose namespaces it runs in; none for the control plane.
    pub(crate) node: Option<String>,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// Whether it starts only when the API server is ready. If it started earlier, its retry
    /// back-off would cost more time than the wait.
    pub(crate) after_api: bool,
}

/// Addresses and data directory of a control plane.
#[derive(Debug, Clone)]
pub(crate) struct ControlPlaneSettings {
    /// The API server's listen address.
    pub(crate) bind: String,
    /// The API server's advertised address; none on loopback.
    pub(crate) advertise: Option<String>,
    pub(crate) api_port: u16,
    pub(crate) etcd_ports: (u16, u16),
    /// etcd's data directory.
    pub(crate) data: PathBuf,
    pub(crate) families: Families,
    /// The path of the API server's audit log.
    pub(crate) audit: PathBuf,
    /// The path of the API server's `AdmissionConfiguration`, if any.
    pub(crate) admission: Option<PathBuf>,
    /// The controller-manager's port for metrics; none disables it.
    pub(crate) manager_port: Option<u16>,
}

/// etcd, the API server and the controller-manager, in this order.
pub(crate) fn control_plane(
    programs: &Programs,
    credentials: &Credentials,
    settings: &ControlPlaneSettings,
) -> Result<Vec<Component>, ProvisionError> {
    Ok(vec![
        component("etcd", programs.path("etcd")?, etcd(credentials, settings)),
        component("kube-apiserver", programs.path("kube-apiserver")?, api_server(credentials, settings)),
        component(
            "kube-controller-manager",
            programs.path("kube-controller-manager")?,
            controller_manager(credentials, settings),
        ),
    ])
}

/// The scheduler.
pub(crate) fn scheduler(programs: &Programs, credentials: &Credentials) -> Result<Component, ProvisionError> {
    let arguments = clients("scheduler", credentials)
        .chain(["--leader-elect=false".to_owned(), "--bind-address=127.0.0.1".to_owned()]);
    Ok(component("kube-scheduler", programs.path("kube-scheduler")?, arguments.collect()))
}

fn component(name: &str, program: &Path, arguments: Vec<String>) -> Component {
    let after_api = matches!(name, "kube-controller-manager" | "kube-scheduler");
    Component { name: name.to_owned(), node: None, program: program.to_owned(), arguments, after_api }
}

fn etcd(credentials: &Credentials, settings: &ControlPlaneSettings) -> Vec<String> {
    let clients = format!("https://127.0.0.1:{}", settings.etcd_ports.0);
    let peers = format!("https://127.0.0.1:{}", settings.etcd_ports.1);
    let mut arguments = vec![
        "--name=lab".to_owned(),
        format!("--data-dir={}", settings.data.display()),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=lab={peers}"),
        // The data is discarded with the lab, so it need not survive a crash.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    for prefix in ["", "peer-"] {
        arguments.extend([
            format!("--{prefix}cert-file={}", credentials.file("etcd.crt")),
            format!("--{prefix}key-file={}", credentials.file("etcd.key")),
            format!("--{prefix}trusted-ca-file={}", credentials.file("etcd-ca.crt")),
            format!("--{prefix}client-cert-auth"),
        ]);
    }
    arguments
}

/// The API server's arguments, as kubeadm sets them.
fn api_server(credentials: &Credentials, settings: &ControlPlaneSettings) -> Vec<String> {
    let file = |name: &str| credentials.file(name);
    let mut arguments = vec![
        format!("--bind-address={}", settings.bind),
        format!("--secure-port={}", settings.api_port),
        format!("--etcd-servers=https://127.0.0.1:{}", settings.etcd_ports.0),
        format!("--etcd-cafile={}", file("etcd-ca.crt")),
        format!("--etcd-certfile={}", file("etcd-client.crt")),
        format!("--etcd-keyfile={}", file("etcd-client.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        format!("--tls-cert-file={}", file("apiserver.crt")),
        format!("--tls-private-key-file={}", file("apiserver.key")),
        format!("--kubelet-client-certificate={}", file("kubelet-client.crt")),
        format!("--kubelet-client-key={}", file("kubelet-client.key")),
        format!("--kubelet-certificate-authority={}", file("ca.crt")),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--proxy-client-cert-file={}", file("front-proxy-client.crt")),
        format!("--proxy-client-key-file={}", file("front-proxy-client.key")),
        format!("--requestheader-client-ca-file={}", file("front-proxy-ca.crt")),
        "--requestheader-allowed-names=front-proxy-client".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        format!("--service-account-key-file={}", file("sa.pub")),
        format!("--service-account-signing-key-file={}", file("sa.key")),
        format!("--service-cluster-ip-range={}", SERVICE_RANGE.cidrs(settings.families).join(",")),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--enable-bootstrap-token-auth=true".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--audit-policy-file={}", audit::policy().display()),
        format!("--audit-log-path={}", settings.audit.display()),
    ];
    let admission = settings.admission.as_ref();
    arguments.extend(admission.map(|file| format!("--admission-control-config-file={}", file.display())));
    match &settings.advertise {
        Some(address) => arguments.push(format!("--advertise-address={address}")),
        // Endpoints must not have loopback addresses, and nothing uses the `kubernetes` Service on
        // loopback.
        None => arguments.push("--endpoint-reconciler-type=none".to_owned()),
    }
    arguments
}

fn controller_manager(credentials: &Credentials, settings: &ControlPlaneSettings) -> Vec<String> {
    clients("controller-manager", credentials)
        .chain([
            "--controllers=*,bootstrapsigner,tokencleaner".to_owned(),
            "--use-service-account-credentials=true".to_owned(),
            "--leader-elect=false".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", settings.manager_port.unwrap_or(0)),
            format!("--root-ca-file={}", credentials.file("ca.crt")),
            format!("--service-account-private-key-file={}", credentials.file("sa.key")),
            format!("--cluster-signing-cert-file={}", credentials.file("ca.crt")),
            format!("--cluster-signing-key-file={}", credentials.file("ca.key")),
            format!("--cluster-cidr={}", POD_RANGE.cidrs(settings.families).join(",")),
            // The lab assigns the pod CIDRs, so that they follow the order of the nodes.
            "--allocate-node-cidrs=false".to_owned(),
        ])
        .collect()
}

/// Kubeconfig flags. Clients of the API server also use it to authenticate and authorize their own
/// callers.
fn clients(user: &str, credentials: &Credentials) -> impl Iterator<Item = String> {
    let path = credentials.kubeconfig_path(user).display().to_string();
    ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
        .into_iter()
        .map(move |flag| format!("--{flag}={path}"))
}
