//! The programs of a control plane and how they are started: pure, the same for a whole lab and for a control plane
//! on loopback.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::audit;
use crate::credentials::Credentials;
use crate::provision::{Programs, ProvisionError};
use crate::topology::{Families, POD_RANGE, SERVICE_RANGE};

/// One long-running program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Component {
    /// Its name in status and logs, such as `kube-apiserver` or `edge-1/kubelet`.
    pub(crate) name: String,
    /// The node whose namespaces it runs in; none for the control plane's.
    pub(crate) node: Option<String>,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// Whether it starts when the API server is ready. Started before, it would wait longer than that takes.
    pub(crate) after_api: bool,
}

/// Where a control plane listens and keeps its data.
#[derive(Debug, Clone)]
pub(crate) struct ControlPlaneSettings {
    /// The address that the API server listens on.
    pub(crate) bind: String,
    /// The address that it tells others, when that is one that they can use.
    pub(crate) advertise: Option<String>,
    pub(crate) api_port: u16,
    pub(crate) etcd_ports: (u16, u16),
    /// etcd's data.
    pub(crate) data: PathBuf,
    pub(crate) families: Families,
    /// Where the API server writes down what the project's own programs ask.
    pub(crate) audit: PathBuf,
    /// The API server's `AdmissionConfiguration`, if it has one.
    pub(crate) admission: Option<PathBuf>,
    /// Where the controller-manager serves its own metrics; none for nowhere.
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
        // The data ends with the lab, so nothing is gained by waiting for the disk.
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

/// As kubeadm starts it.
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
        // Endpoints may not hold a loopback address, and nobody follows the `kubernetes` Service there.
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
            // The lab gives each node its range, so that addresses follow the order of the nodes' names.
            "--allocate-node-cidrs=false".to_owned(),
        ])
        .collect()
}

/// Everything that is a client of the API server asks it also who its own callers are.
fn clients(user: &str, credentials: &Credentials) -> impl Iterator<Item = String> {
    let path = credentials.kubeconfig_path(user).display().to_string();
    ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
        .into_iter()
        .map(move |flag| format!("--{flag}={path}"))
}
