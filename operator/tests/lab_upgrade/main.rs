//! Two releases on a real cluster of three nodes, from their files alone: one is upgraded to the
//! other and back, under traffic, by kubectl and by Helm, in both modes.
//!
//! `cargo xtask soak release` runs all of it with the release before this one and this one, as
//! `cargo xtask release` makes them. The lab layer upgrades by kubectl in mode Beside, with the
//! same programs under two names; `lab_release` upgrades by Helm in mode Filter.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod pods;

use std::env;
use std::fmt;
use std::path::Path;
use std::time::Instant;

use isp_lab::Request;
use isp_lab::docs::{self, Block};
use isp_testkit::inventory::Inventory;
use isp_testkit::release::Release;
use isp_testkit::snapshot::Snapshot;
use isp_testkit::traffic::{STEADY, Traffic};
use isp_testkit::web_lab::{OBJECT, WebLab, addresses};
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_operator");

/// How a release is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Kubectl,
    Helm,
}

/// The mode of the object, and the number of nodes with an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Filter,
    Beside,
}

impl Mode {
    fn agents(self) -> usize {
        match self {
            Self::Filter => 2,
            Self::Beside => 3,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

const ALL: [(Way, Mode); 4] = [
    (Way::Kubectl, Mode::Beside),
    (Way::Kubectl, Mode::Filter),
    (Way::Helm, Mode::Filter),
    (Way::Helm, Mode::Beside),
];

#[tokio::test]
async fn a_release_is_upgraded_and_downgraded_from_its_files_alone() {
    let commands = Commands::read();
    let web = WebLab::up("upgrade", PROGRAM).await;
    let before = Release::before(&web.lab, Path::new(PROGRAM)).await;
    let this = Release::this(&web.lab, Path::new(PROGRAM), None).await;
    for release in [&before, &this] {
        release.run(&commands.verify).await;
        release.run_on_nodes(&web.lab, &commands.import).await;
    }
    let scene = Scene {
        everything: Inventory::take(&web.lab).await,
        snapshot: web.snapshot().await,
        web,
        commands,
        before,
        this,
    };
    let count = env::var("ISP_SOAK_UPGRADES").map_or(1, |count| count.parse().unwrap());
    for (way, mode) in ALL.into_iter().take(count) {
        scene.there_and_back(way, mode).await;
    }
}

/// The commands of docs/install.md.
struct Commands {
    verify: Block,
    import: Block,
    /// Also upgrades and downgrades.
    apply: Block,
    helm_install: Block,
    helm_upgrade: Block,
    delete_objects: Block,
    helm_uninstall: Block,
    delete: Block,
}

impl Commands {
    fn read() -> Self {
        const PAGE: &str = "docs/install.md";
        const TEST: &str = "a_release_is_upgraded_and_downgraded_from_its_files_alone";
        // These are the same with and without a checkout.
        const OTHER: &str = "a_release_is_upgraded_without_a_failed_request_and_leaves_nothing_behind";
        let [verify, import, apply, helm_install, helm_upgrade, delete] = docs::commands(PAGE, TEST).unwrap();
        let [_, _, _, _, delete_objects, helm_uninstall, _] = docs::commands(PAGE, OTHER).unwrap();
        Self { verify, import, apply, helm_install, helm_upgrade, delete_objects, helm_uninstall, delete }
    }
}

struct Scene {
    web: WebLab,
    commands: Commands,
    before: Release,
    this: Release,
    everything: Inventory,
    snapshot: Snapshot,
}

impl Scene {
    async fn there_and_back(&self, way: Way, mode: Mode) {
        let Self { web, commands, before, this, .. } = self;
        println!("by {way:?}, mode {mode}");
        let (install, upgrade, uninstall) = match way {
            Way::Kubectl => (&commands.apply, &commands.apply, &commands.delete),
            Way::Helm => (&commands.helm_install, &commands.helm_upgrade, &commands.helm_uninstall),
        };
        before.run(install).await;
        web.lab.apply(&object(mode)).await.unwrap();
        web.wait_until_ready().await;
        pods::are_of(web, before, mode.agents()).await;
        addresses::arrive(web).await;

        for (release, what) in [(this, "upgraded"), (before, "downgraded")] {
            let traffic = Traffic::start(web, STEADY).await;
            let (began, writes) = (Instant::now(), writes_to_service(web));
            release.run(upgrade).await;
            pods::are_of(web, release, mode.agents()).await;
            web.wait_until_ready().await;
            println!("{what} after {:.1} s", began.elapsed().as_secs_f64());
            addresses::arrive(web).await;
            traffic.expect_no_failure().await;
            let writes = writes_to_service(web) - writes;
            println!("{what} with {writes} writes to the Service");
            // The release before may have faults.
            assert!(writes == 0 || what == "downgraded", "the Service was changed meanwhile");
        }

        before.run(&commands.delete_objects).await;
        web.expect_restored(&self.snapshot).await;
        addresses::are_lost(web).await;
        before.run(uninstall).await;
        self.everything.expect_again(&web.lab).await;
    }
}

/// How often the project has changed the application's Service so far.
fn writes_to_service(web: &WebLab) -> usize {
    let requests = web.lab.audit().unwrap();
    let is_write = |request: &&Request| {
        request.resource == "services"
            && request.name.as_deref() == Some("frontend")
            && ["patch", "update"].contains(&request.verb.as_str())
    };
    requests.iter().filter(is_write).count()
}

fn object(mode: Mode) -> String {
    json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve", "metadata": {"name": OBJECT},
        "spec": {
            "ingressNodes": {"selector": {"matchLabels": {"node-role.kubernetes.io/ingress": ""}}},
            "services": [{"namespace": "web", "name": "frontend"}],
            "mode": mode.to_string(),
        },
    })
    .to_string()
}
