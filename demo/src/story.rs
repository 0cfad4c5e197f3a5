//! The order of the demo's steps.

use std::io::Write;
use std::time::Duration;

use isp_api::IngressSourcePreserve;
use isp_api::preserve::Phase;
use isp_lab::{KubeProxyState, LabError};
use serde::Serialize;
use thiserror::Error;
use tokio::time::{Instant, sleep};

use crate::probe;
use crate::screen::{Screen, Tone};
use crate::steady::{Counts, Steady};
use crate::table::{self, Stage, Table, Target};
use crate::world::{DEPLOYMENT, NAMESPACE, World};
use crate::{Arguments, Mode};

const OVERLAY: &str = "manifests/overlays/lab";
const DEADLINE: Duration = Duration::from_mins(5);
const LOOK: Duration = Duration::from_millis(300);

/// Why the demo could not be completed.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub(crate) enum StoryError {
    #[error(transparent)]
    Lab(Box<LabError>),
    #[error("the API server did not answer: {0}")]
    Kube(Box<kube::Error>),
    #[error("no runtime: {0}")]
    Runtime(std::io::Error),
    #[error("cannot start the client: {0}")]
    Client(std::io::Error),
    #[error("{0} is missing; run the demo with --keep and read `cargo xtask lab --name demo logs …`")]
    Missing(String),
    #[error("cannot use the router's packet counter: {0}")]
    Router(String),
    #[error("timed out after {} s waiting until {what}: {stands}", DEADLINE.as_secs())]
    Late { what: &'static str, stands: String },
    #[error("cannot read {file}: {problem}")]
    Sample { file: &'static str, problem: String },
    #[error("cannot print the tables: {0}")]
    Print(std::io::Error),
}

impl From<kube::Error> for StoryError {
    fn from(error: kube::Error) -> Self {
        Self::Kube(Box::new(error))
    }
}

/// The machine-readable report (`--json`).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    as_it_should_be: bool,
    mode: String,
    proxy_mode: String,
    /// The parts of kube-proxy that changed, in a mode that must not touch it.
    #[serde(skip_serializing_if = "Option::is_none")]
    kube_proxy_changes: Option<Vec<String>>,
    ip_families: Vec<&'static str>,
    mesh: bool,
    tables: Vec<Table>,
    steady: Counts,
}

/// Runs the demo. Returns whether all results were as expected.
pub(crate) async fn tell(arguments: &Arguments, screen: &Screen) -> Result<bool, StoryError> {
    screen.heading(
        "1. Start a cluster: one ingress node, two non-ingress nodes, two external clients, an external IP",
    );
    let mut world = World::up(arguments, screen).await?;
    probe::wait_until_served(&world).await?;
    let kube_proxy = KubeProxyState::look(&world.lab).await?;
    screen.heading("2. Which source IP each hop sees");
    let before = show(&world, Stage::Before, screen).await?;
    let steady = Steady::start(&world).await?;
    screen.heading("3. Apply one object under continuous traffic");
    install(&world, screen).await?;
    apply(&world, arguments.mode, &steady, screen).await?;
    restart(&world, &steady, screen).await?;
    screen.heading("4. Which source IP each hop sees now");
    world.look_again().await?;
    let after = show(&world, Stage::After, screen).await?;
    screen.say("\n  changes:");
    for line in table::differences(&before, &after) {
        screen.say(&line);
    }
    let mut tables = vec![before, after];
    let mut kube_proxy_changes = kube_proxy.changes(&KubeProxyState::look(&world.lab).await?);
    if !arguments.keep {
        screen.heading("5. Delete the object; everything is restored");
        delete(&world, &steady, screen).await?;
        restart(&world, &steady, screen).await?;
        world.look_again().await?;
        tables.push(show(&world, Stage::Restored, screen).await?);
        kube_proxy_changes.extend(kube_proxy.changes(&KubeProxyState::look(&world.lab).await?));
    }
    kube_proxy_changes.sort();
    kube_proxy_changes.dedup();
    let kube_proxy_changes = (arguments.mode == Mode::Beside).then_some(kube_proxy_changes);
    let steady = steady.end().await?;
    let report = Report {
        as_it_should_be: steady.sent > 0
            && steady.failed == 0
            && kube_proxy_changes.as_ref().is_none_or(Vec::is_empty)
            && tables.iter().all(Table::is_as_it_should_be),
        mode: arguments.mode.to_string(),
        proxy_mode: arguments.proxy_mode.to_string(),
        kube_proxy_changes,
        ip_families: world.families().names(),
        mesh: world.has_mesh(),
        tables,
        steady,
    };
    conclude(&report, screen);
    if arguments.json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| StoryError::Print(error.into()))?;
        writeln!(std::io::stdout(), "{text}").map_err(StoryError::Print)?;
    }
    if arguments.keep {
        what_to_try(&world, arguments, screen);
        drop(world.lab.keep());
    }
    Ok(report.as_it_should_be)
}

async fn show(world: &World, stage: Stage, screen: &Screen) -> Result<Table, StoryError> {
    let table = probe::table(world, stage).await?;
    for line in table::lines(&table, world.has_mesh(), screen) {
        screen.say(&line);
    }
    Ok(table)
}

async fn install(world: &World, screen: &Screen) -> Result<(), StoryError> {
    let own = std::env::current_exe().map_err(StoryError::Client)?;
    screen.say(&format!("  $ kubectl apply --server-side -k {OVERLAY}"));
    world.lab.install_project(&own, &World::path(OVERLAY)).await?;
    Ok(())
}

async fn apply(world: &World, mode: Mode, steady: &Steady, screen: &Screen) -> Result<(), StoryError> {
    let (name, file) = world.sample();
    match mode {
        Mode::Filter => {
            screen.say(&format!("  $ kubectl apply -f {file}"));
            let path = World::path(file).display().to_string();
            world.lab.kubectl(["apply", "-f", &path]).await?;
        }
        Mode::Beside => {
            screen.say(&format!("  $ kubectl apply -f {file}  # with spec.mode: {mode}"));
            world.lab.apply(&world.object(mode)?.to_string()).await?;
        }
    }
    follow(world, steady, screen, "the object is Ready", |object| {
        let status = object.and_then(|object| object.status.as_ref());
        status.is_some_and(|status| status.phase == Some(Phase::Ready))
    })
    .await?;
    screen.say(&format!("  {name} is Ready; {}", steady.counts()));
    Ok(())
}

async fn delete(world: &World, steady: &Steady, screen: &Screen) -> Result<(), StoryError> {
    let (name, file) = world.sample();
    screen.say(&format!("  $ kubectl delete -f {file}"));
    let path = World::path(file).display().to_string();
    world.lab.kubectl(["delete", "-f", &path, "--wait=false"]).await?;
    follow(world, steady, screen, "the object is deleted", |object| object.is_none()).await?;
    screen.say(&format!("  {name} is deleted; {}", steady.counts()));
    Ok(())
}

/// Restarts the application, as `status.sidecars` requests: pods keep the sidecar that they were
/// created with.
async fn restart(world: &World, steady: &Steady, screen: &Screen) -> Result<(), StoryError> {
    if !world.has_mesh() {
        return Ok(());
    }
    screen.say(&format!("  $ kubectl -n {NAMESPACE} rollout restart {DEPLOYMENT}"));
    world.lab.kubectl(["-n", NAMESPACE, "rollout", "restart", DEPLOYMENT]).await?;
    world.lab.kubectl(["-n", NAMESPACE, "rollout", "status", DEPLOYMENT, "--timeout=180s"]).await?;
    screen.say(&format!("  the application runs in a new pod; {}", steady.counts()));
    Ok(())
}

/// Shows the object's status until `is_there` returns true.
async fn follow(
    world: &World,
    steady: &Steady,
    screen: &Screen,
    what: &'static str,
    is_there: impl Fn(Option<&IngressSourcePreserve>) -> bool,
) -> Result<(), StoryError> {
    let deadline = Instant::now() + DEADLINE;
    let objects = world.objects();
    loop {
        let object = objects.get_opt(world.sample().0).await?;
        if is_there(object.as_ref()) {
            return Ok(());
        }
        let stands = match &object {
            Some(object) => stands(object, world.acknowledged().await?),
            None => "does not exist".to_owned(),
        };
        screen.stand(&stands, &steady.counts());
        if Instant::now() > deadline {
            return Err(StoryError::Late { what, stands });
        }
        sleep(LOOK).await;
    }
}

/// The object's status in one line.
fn stands(object: &IngressSourcePreserve, acknowledged: usize) -> String {
    let Some(status) = &object.status else { return "not observed yet".to_owned() };
    let phase = status.phase.map(|phase| format!("{phase:?}")).unwrap_or_default();
    let mut parts = vec![phase];
    if let Some(summary) = &status.summary {
        parts.push(format!("{} nodes have their agent", summary.nodes));
        parts.push(format!("{acknowledged} acknowledged"));
        parts.push(format!("{} Services preserved", summary.services));
    }
    let waves =
        status.node_pools.iter().map(|pool| format!("pool {}: {} handed over", pool.name, pool.handed_over));
    parts.extend(waves);
    parts.join(", ")
}

fn conclude(report: &Report, screen: &Screen) {
    let Counts { sent, failed, slowest_ms, failures } = &report.steady;
    screen.heading("Continuous traffic");
    screen.say(&format!("  {sent} requests over new connections, {failed} failed, slowest {slowest_ms} ms"));
    for failure in failures {
        screen.say(&format!("  {failure}"));
    }
    if let Some(changes) = &report.kube_proxy_changes {
        screen.heading("kube-proxy");
        screen.say(&match changes.as_slice() {
            [] => "  its DaemonSet, ConfigMap and pods are the same as before".to_owned(),
            changes => format!("  UNEXPECTED: changed: {}", changes.join(", ")),
        });
    }
    let (tone, words) = if report.as_it_should_be {
        (Tone::Good, "All results are as expected.")
    } else {
        (Tone::Bad, "Some results are not as expected: see UNEXPECTED above, and failed requests.")
    };
    screen.say(&format!("\n{}", screen.tinted(tone, words)));
}

fn what_to_try(world: &World, arguments: &Arguments, screen: &Screen) {
    let (name, file) = world.sample();
    let lab = format!("cargo xtask lab --name {}", arguments.name);
    let kubeconfig = world.lab.kubeconfig();
    let path = if world.has_mesh() { crate::world::GUARDED } else { "" };
    screen.heading("The cluster stays up. Try:");
    for line in [
        format!("export KUBECONFIG={}", kubeconfig.display()),
        format!("{lab} kubectl -- get isp {name} -o wide"),
        "cargo run -q -p isp-cli -- status".to_owned(),
        "cargo run -q -p isp-cli -- explain-node work-1".to_owned(),
    ]
    .into_iter()
    .chain(world.addresses.iter().flat_map(|addresses| {
        let external = addresses.target(Target::ExternalAddress);
        ["client", "client-2"]
            .map(|client| format!("{lab} exec {client} -- curl -s -i http://{external}{path}"))
    }))
    .chain([format!("{lab} kubectl -- delete -f {file}"), format!("{lab} down")])
    {
        screen.say(&format!("  {line}"));
    }
}
