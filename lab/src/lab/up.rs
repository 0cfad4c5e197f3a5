//! Starts a lab: gets the programs and images, writes the lab's directory, starts init, creates the
//! cluster's objects, and waits until the cluster is ready.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use nix::unistd::Pid;

use super::{
    Builder, Lab, LabError, Place, blocking, builder, cgroups, directory, down, failure, init_pid, limits,
    owner,
};
use crate::addons;
use crate::audit;
use crate::command;
use crate::components::{self, ControlPlaneSettings};
use crate::credentials::Credentials;
use crate::images;
use crate::istio;
use crate::node;
use crate::provision::{self, Purpose};
use crate::spec::{LabDir, Spec};
use crate::store;
use crate::topology::{self, KubeProxy, SERVICE_RANGE, Topology, control_plane_addresses};

const API_PORT: u16 = 6443;
const API_DEADLINE: Duration = Duration::from_secs(90);
const CLUSTER_DEADLINE: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(100);

pub(super) async fn up(builder: Builder) -> Result<Lab, LabError> {
    builder::check_name(&builder.name)?;
    let name = builder.name.clone();
    let lab_directory = directory(&name)?;
    let prepared = builder.clone();
    let to_prepare = lab_directory.clone();
    let spec = blocking(move || prepare(&prepared, &to_prepare)).await?;
    match start(&builder, &lab_directory, spec).await {
        Ok(lab) => Ok(lab),
        Err(error) => {
            let logs = failure::save(&lab_directory, &name)?;
            down(&name)?;
            Err(LabError::Failed { error: Box::new(error), logs })
        }
    }
}

/// Does all the work that needs no running cluster.
fn prepare(builder: &Builder, lab: &LabDir) -> Result<Spec, LabError> {
    let topology = builder.topology()?;
    if !provision::is_root() {
        return Err(LabError::NotRoot);
    }
    let progress = builder.progress;
    if init_pid(lab).is_some() {
        if !owner::is_gone(lab) {
            return Err(LabError::Running(builder.name.clone()));
        }
        progress(&format!("stopping lab {}: the process that started it has ended", builder.name));
        down(&builder.name)?;
    }
    limits::raise(progress);
    let purpose = if builder.istio { Purpose::Mesh } else { Purpose::Cluster };
    let programs = provision::provision(purpose, builder.kubernetes, progress)?;
    let images = images::archives(&programs, builder.kubernetes, builder.istio, progress)?;
    let own_images = images::programs();
    let store = store::prepared(&programs, &images, progress)?.with(&programs, &own_images, progress)?;

    // Removes the remains of a killed lab of that name.
    down(&builder.name)?;
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |source| LabError::File { path, source }
    };
    fs::create_dir_all(lab.logs()).map_err(fail(&lab.logs()))?;
    provision::disk_for_lab(lab.path())?;
    let families = topology.families;
    let server = topology::server(families, API_PORT);
    let credentials = issue(lab, &topology, &server)?;

    let settings = ControlPlaneSettings {
        bind: "::".to_owned(),
        advertise: Some(control_plane_addresses(families)[0].to_string()),
        api_port: API_PORT,
        etcd_ports: (2379, 2380),
        data: "/run/etcd".into(),
        families,
        audit: lab.log(audit::LOG),
        admission: None,
        manager_port: Some(10257),
    };
    let mut all = components::control_plane(&programs, &credentials, &settings)?;
    all.push(components::scheduler(&programs, &credentials)?);
    let mut node_directories = Vec::new();
    for node in &topology.nodes {
        let own = lab.node(node.name.as_str());
        write_files(&own, node::files(&builder.name, &topology, node, &programs, &credentials, &own)?)?;
        cgroups::create(&builder.name, node.name.as_str())?;
        store.copy_to(&own.join("lib/containerd"))?;
        all.extend(node::components(&topology, node, &programs, &credentials, &own)?);
        if node.kube_proxy == KubeProxy::Process {
            let (file, kube_proxy) =
                node::kube_proxy(families, node, builder.proxy_mode, &programs, &credentials, &own)?;
            write_files(&own, vec![file])?;
            all.push(kube_proxy);
        }
        node_directories.push(own);
    }
    let spec = Spec {
        name: builder.name.clone(),
        topology,
        host_port: builder.host_port,
        api_port: API_PORT,
        components: all,
        node_directories,
        kubectl: programs.path("kubectl")?.to_owned(),
        ctr: programs.path("ctr")?.to_owned(),
        own_images,
        istioctl: builder.istio.then(|| programs.path("istioctl").map(ToOwned::to_owned)).transpose()?,
    };
    lab.write_spec(&spec)?;
    Ok(spec)
}

/// Issues the API server's certificate, with all its names and addresses, and one identity per
/// node.
fn issue(lab: &LabDir, topology: &Topology, server: &str) -> Result<Credentials, LabError> {
    let families = topology.families;
    let dns = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ];
    let addresses = control_plane_addresses(families).into_iter().chain(SERVICE_RANGE.hosts(1, families));
    let names = ["localhost", "127.0.0.1", "::1"]
        .into_iter()
        .chain(dns)
        .map(str::to_owned)
        .chain(addresses.map(|address| address.to_string()))
        .collect();
    let issuing = Credentials::create(lab.credentials(), names, server)?;
    for node in &topology.nodes {
        let addresses = node.addresses(families).iter().map(ToString::to_string).collect();
        issuing.node(node.name.as_str(), addresses, server)?;
    }
    Ok(issuing.finish())
}

fn write_files(directory: &Path, files: Vec<(&'static str, String)>) -> Result<(), LabError> {
    for (name, content) in files {
        let path = directory.join(name);
        let written =
            path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, content));
        written.map_err(|source| LabError::File { path, source })?;
    }
    Ok(())
}

async fn start(builder: &Builder, lab: &LabDir, spec: Spec) -> Result<Lab, LabError> {
    let started = Instant::now();
    owner::record(lab)?;
    let pid = launch(lab)?;
    let client = wait_for_api(lab, pid).await?;
    (builder.progress)(&format!("API server answers after {:.1} s", started.elapsed().as_secs_f32()));
    // Not owned until it is ready: on failure, `up` saves the logs first and then stops the lab.
    let mut lab = Lab { directory: lab.clone(), spec, pid, client, owned: false };

    for component in lab.spec.components.iter().filter(|component| component.after_api) {
        lab.start_component(&component.name).await?;
    }
    give_objects(builder, &lab).await?;
    wait_until("the cluster", CLUSTER_DEADLINE, || cluster_ready(&lab)).await?;
    (builder.progress)(&format!("cluster ready after {:.1} s", started.elapsed().as_secs_f32()));
    if let Some(istioctl) = &lab.spec.istioctl {
        istio::install(&lab, istioctl).await?;
        (builder.progress)(&format!("Istio ready after {:.1} s", started.elapsed().as_secs_f32()));
    }
    lab.owned = true;
    Ok(lab)
}

/// Starts init in its own session, so that it outlives the terminal.
fn launch(lab: &LabDir) -> Result<Pid, LabError> {
    let program = images::own_program("isp-lab")?;
    let mut launch = Command::new("setsid");
    launch.arg("--wait").arg(program).arg("launch").arg(lab.path()).stdin(Stdio::null());
    command::run(&mut launch)?;
    init_pid(lab).ok_or_else(|| LabError::InitEnded(init_log(lab)))
}

fn init_log(lab: &LabDir) -> String {
    command::last_lines(&fs::read_to_string(lab.log("init")).unwrap_or_default(), 5)
}

async fn wait_for_api(lab: &LabDir, pid: Pid) -> Result<Client, LabError> {
    let started = Instant::now();
    loop {
        if init_pid(lab) != Some(pid) {
            return Err(LabError::InitEnded(init_log(lab)));
        }
        let problem = match api_ready(lab).await {
            Ok(client) => return Ok(client),
            Err(problem) => problem,
        };
        if started.elapsed() > API_DEADLINE {
            let log = fs::read_to_string(lab.log("kube-apiserver")).unwrap_or_default();
            let detail = format!("{problem}; the end of its log:\n{}", command::last_lines(&log, 5));
            return Err(LabError::Timeout { what: "the API server", seconds: API_DEADLINE, detail });
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn api_ready(lab: &LabDir) -> Result<Client, LabError> {
    if !lab.kubeconfig().exists() {
        let server = format!("https://127.0.0.1:{}", lab.listening()?.host_port);
        Credentials::at(lab.credentials()).readdress("admin", &server, &lab.kubeconfig())?;
    }
    let client = client(lab).await?;
    let request = http::Request::get("/readyz").body(Vec::new()).map_err(kube::Error::HttpError)?;
    client.request_text(request).await?;
    Ok(client)
}

pub(super) async fn client(lab: &LabDir) -> Result<Client, LabError> {
    client_from(&lab.kubeconfig()).await
}

/// A client for the cluster that the kubeconfig points to.
pub(crate) async fn client_from(path: &PathBuf) -> Result<Client, LabError> {
    let kubeconfig = Kubeconfig::read_from(path).map_err(Box::new)?;
    let config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(Box::new)?;
    Ok(Client::try_from(config)?)
}

async fn give_objects(builder: &Builder, lab: &Lab) -> Result<(), LabError> {
    let topology = &lab.spec.topology;
    let nodes: Api<Node> = Api::all(lab.client());
    let mine = PatchParams::apply("isp-lab").force();
    for node in &topology.nodes {
        let object = addons::node(topology, node);
        nodes.patch(node.name.as_str(), &mine, &Patch::Apply(object)).await?;
    }
    let server = topology::server(topology.families, API_PORT);
    let objects = addons::cluster(topology, builder.proxy_mode, builder.kubernetes, &server);
    lab.apply(&objects.to_string()).await
}

/// `None` when all nodes are ready, kube-proxy runs on each and CoreDNS is available; else the
/// first thing that is missing.
async fn cluster_ready(lab: &Lab) -> Result<Option<String>, LabError> {
    let nodes = Api::<Node>::all(lab.client()).list(&ListParams::default()).await?;
    let ready = |node: &Node| {
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|list| list.iter().any(|item| item.type_ == "Ready" && item.status == "True"))
    };
    let wanted = lab.spec.topology.nodes.len();
    let count = nodes.items.iter().filter(|node| ready(node)).count();
    if count < wanted {
        return Ok(Some(format!("{count} of {wanted} nodes are ready")));
    }
    if let Some(missing) = kube_proxy_missing(lab).await? {
        return Ok(Some(missing));
    }
    let dns = Api::<Deployment>::namespaced(lab.client(), "kube-system").get("coredns").await?;
    let available = dns.status.and_then(|status| status.available_replicas).unwrap_or(0);
    Ok((available < 1).then(|| "CoreDNS is not available".to_owned()))
}

/// `None` when kube-proxy runs on each node as it should.
async fn kube_proxy_missing(lab: &Lab) -> Result<Option<String>, LabError> {
    let topology = lab.topology();
    let wanted = topology.kube_proxy_nodes(&[KubeProxy::DaemonSet]).len();
    if wanted > 0 {
        let proxy = Api::<DaemonSet>::namespaced(lab.client(), "kube-system").get("kube-proxy").await?;
        let ready = proxy.status.map_or(0, |status| status.number_ready);
        if usize::try_from(ready).unwrap_or(0) < wanted {
            return Ok(Some(format!("{ready} of {wanted} kube-proxy pods are ready")));
        }
    }
    for node in topology.kube_proxy_nodes(&[KubeProxy::Process]) {
        let health = ["--fail", "http://localhost:10256/healthz"];
        if !lab.curl(&Place::Node(node.to_owned()), &health).await?.success {
            return Ok(Some(format!("kube-proxy on {node} is not healthy")));
        }
    }
    Ok(None)
}

/// Polls until `missing` returns `None`, up to `limit`.
pub(crate) async fn wait_until<F>(
    what: &'static str,
    limit: Duration,
    mut missing: impl FnMut() -> F,
) -> Result<(), LabError>
where
    F: Future<Output = Result<Option<String>, LabError>>,
{
    let started = Instant::now();
    loop {
        let Some(detail) = missing().await? else { return Ok(()) };
        if started.elapsed() > limit {
            return Err(LabError::Timeout { what, seconds: limit, detail });
        }
        tokio::time::sleep(POLL).await;
    }
}
