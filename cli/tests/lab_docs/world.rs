//! A cluster as README starts it, an application behind Istio's gateway, and a terminal to type in.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use isp_lab::docs::{Block, Terminal};
use isp_lab::{Answer, ECHO_IMAGE, Lab, Place, Protocol};
use isp_testkit::release::Release;
use isp_testkit::{answers, until};
use serde_json::{Value, json};

use super::installation::Installation;

/// README has none, and works on the lab `default`, which may be somebody's.
const NAME: &str = "docs";
const EXTERNAL: &str = "192.0.2.10";
/// The program under test; the others are beside it.
const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-isp");

/// The client outside, and a pod on a non-ingress node, with the addresses by which they leave
/// their networks.
pub(crate) const CLIENT: (Place, &str) = (Place::Client, "198.51.100.10");
pub(crate) fn pod_elsewhere() -> (Place, &'static str) {
    (Place::Pod("default".to_owned(), "asking".to_owned()), "10.90.0.12")
}

pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

pub(crate) struct World {
    pub(crate) lab: Lab,
    /// A shell in a checkout.
    terminal: Terminal,
    /// A shell of somebody who has the files of a release and no checkout.
    pub(crate) release: Release,
    began: Instant,
    _down: Down,
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            match self.lab.save_logs() {
                Ok(path) => eprintln!("logs of lab {NAME}: {}", path.display()),
                Err(error) => eprintln!("cannot keep the logs of lab {NAME}: {error}"),
            }
        }
    }
}

/// Ends the lab when it goes, however far the test has come.
struct Down;

impl Drop for Down {
    fn drop(&mut self) {
        if let Err(error) = isp_lab::down(NAME) {
            eprintln!("cannot stop lab {NAME}: {error}");
        }
    }
}

impl World {
    /// By all of README's commands but the last one. The images and the plugin are those of a
    /// release, by the commands of docs/install.md.
    pub(crate) async fn up(look_around: &Block, installation: &Installation) -> Self {
        let [up, nodes, ask, _] = &look_around.words()[..] else { panic!("{look_around}") };
        lab_command(up).await;
        let down = Down;
        let lab = Lab::attach(NAME).await.unwrap();
        let kubectl = lab.program("kubectl").unwrap();
        let terminal = Terminal::open(&lab.kubeconfig(), &[&kubectl, &built("kubectl-isp")]).unwrap();
        let release = Release::this(&lab, Path::new(PROGRAM), Some(Path::new(PROGRAM))).await;
        let world = Self { lab, terminal, release, began: Instant::now(), _down: down };
        let listed = lab_command(nodes).await;
        assert_eq!(listed.matches(" Ready ").count(), 3, "{listed}");
        let healthy = lab_command(ask).await;
        assert!(healthy.contains("lastUpdated"), "{healthy}");

        for block in [&installation.verify, &installation.plugin] {
            world.run_with_release(block).await;
        }
        world.release.run_on_nodes(&world.lab, &installation.import).await;
        let items = json!({"apiVersion": "v1", "kind": "List", "items": application()});
        world.lab.apply(&items.to_string()).await.unwrap();
        world.rolled_out().await;
        let ready = ["wait", "--for=condition=Ready", "pod/asking", "--timeout=60s"];
        world.lab.kubectl(ready).await.unwrap();
        world
    }

    /// By the last one.
    pub(crate) async fn down(self, look_around: &Block) {
        lab_command(look_around.words().last().unwrap()).await;
        assert!(isp_lab::list().unwrap().iter().all(|(name, _)| name != NAME));
    }

    /// What a block printed in a checkout; none of its commands may fail.
    pub(crate) async fn run(&self, block: &Block) -> String {
        run(&self.terminal, block).await
    }

    /// What a block printed without a checkout; none of its commands may fail.
    pub(crate) async fn run_with_release(&self, block: &Block) -> String {
        run(&self.release.terminal, block).await
    }

    /// Restarts the application, for sidecars as they are without an object.
    pub(crate) async fn restart(&self) {
        self.lab.kubectl(["-n", "shop", "rollout", "restart", "deployment/cart"]).await.unwrap();
        self.rolled_out().await;
    }

    /// The application's pods are there.
    pub(crate) async fn rolled_out(&self) {
        let wait = ["-n", "shop", "rollout", "status", "deployment/cart", "--timeout=180s"];
        self.lab.kubectl(wait).await.unwrap();
    }

    /// Asks from a place until a block, which shows the log of the gateway, shows this address for
    /// it: rules and proxies follow within seconds, and so does the log.
    pub(crate) async fn expect_logged(&self, place: &Place, log: &Block, address: &str) {
        until(&format!("the gateway logs {address} for {place}"), async || {
            // Each request has a path of its own to be found by.
            let path = format!("/asked-after-{}", self.began.elapsed().as_millis());
            let asked = self.lab.curl(place, &[&format!("http://{EXTERNAL}{path}")]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(500)).await;
            let shown = self.release.terminal.run(log).await.unwrap().stdout;
            let line = shown.lines().find(|line| line.contains(&path));
            let logged = line.is_some_and(|line| line.contains(&format!("\"{address}\"")));
            if logged { Ok(()) } else { Err(format!("{line:?}, {asked:?}\n{shown}")) }
        })
        .await;
    }

    /// Waits until the application sees a peer like this one behind the gateway.
    pub(crate) async fn expect_peer(&self, what: &str, is_so: impl Fn(IpAddr) -> bool) {
        let target = format!("{EXTERNAL}:80");
        let like_it = |answer: &Answer| answer.peer().is_some_and(&is_so);
        answers::until(&self.lab, what, &Place::Client, (Protocol::Http, &target), like_it).await;
    }
}

async fn run(terminal: &Terminal, block: &Block) -> String {
    let began = Instant::now();
    let output = terminal.run(block).await.unwrap_or_else(|error| panic!("{error}"));
    println!("{:.1} s for {block}", began.elapsed().as_secs_f64());
    output.stdout
}

fn built(program: &str) -> PathBuf {
    Path::new(PROGRAM).with_file_name(program)
}

/// `cargo xtask lab …`, by the program that this runs.
async fn lab_command(words: &[String]) -> String {
    assert_eq!(words[..3], ["cargo", "xtask", "lab"]);
    let mut command = Command::new(built("isp-lab"));
    command.args(["--name", NAME]).args(&words[3..]);
    let Output { status, stdout, stderr } =
        tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert!(status.success(), "{words:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// An application with a sidecar behind the gateway, and a pod elsewhere that asks it.
fn application() -> Vec<Value> {
    let labels = json!({"app": "cart"});
    let container = json!({"name": "echo", "image": ECHO_IMAGE, "imagePullPolicy": "Never"});
    let on = |node: &str| json!({"kubernetes.io/hostname": node});
    let named = |name: &str| json!({"name": name, "namespace": "shop"});
    vec![
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "shop", "labels": {"istio-injection": "enabled"}},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": named("cart"),
            "spec": {
                "selector": {"matchLabels": labels}, "strategy": {"type": "Recreate"},
                "template": {"metadata": {"labels": labels}, "spec": {
                    "nodeSelector": on("work-2"), "terminationGracePeriodSeconds": 1, "containers": [container],
                }},
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": named("cart"),
            "spec": {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
        }),
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": "Gateway", "metadata": named("cart"),
            "spec": {"selector": {"istio": "ingressgateway"}, "servers": [
                {"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["*"]},
            ]},
        }),
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": named("cart"),
            "spec": {"hosts": ["*"], "gateways": ["cart"], "http": [
                {"route": [{"destination": {"host": "cart.shop.svc.cluster.local", "port": {"number": 80}}}]},
            ]},
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asking", "namespace": "default"},
            "spec": {"nodeSelector": on("work-1"), "terminationGracePeriodSeconds": 1, "containers": [container]},
        }),
    ]
}
