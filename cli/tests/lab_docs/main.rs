//! The commands of the docs on a real cluster with a real mesh, as they stand and in their order,
//! and whether what the pages promise is so.
//!
//! README's own commands start the cluster and end it. Everything between them is done on that one,
//! page after page: the tutorial with the files of a release alone, the other pages in a checkout.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod alerts;
mod before;
mod installation;
mod monitoring;
mod runbook;
mod tutorial;
mod world;

use std::path::Path;

use isp_lab::docs::{self, Terminal};
use isp_lab::provision;
use isp_testkit::release;

use self::before::Before;
use self::installation::Installation;
use self::monitoring::Prometheus;
use self::tutorial::Tutorial;
use self::world::{World, say};

#[tokio::test]
async fn the_pages_hold_on_a_real_cluster() {
    const TEST: &str = "the_pages_hold_on_a_real_cluster";
    let [look_around, check, install, use_it] = docs::commands("README.md", TEST).unwrap();
    let [dump] = docs::commands("docs/doctor.md", TEST).unwrap();
    let [counted] = docs::commands("docs/webhook.md", TEST).unwrap();
    let commands = docs::commands("docs/tutorial.md", TEST).unwrap();
    let tutorial = Tutorial { commands, examples: docs::examples("docs/tutorial.md", "yaml").unwrap() };
    let [plugin] = docs::commands("docs/install.md", TEST).unwrap();
    let installation = Installation::read(plugin);
    let operations = docs::commands("docs/operations.md", TEST).unwrap();

    let world = World::up(&look_around, &installation).await;
    if release::is_campaign() {
        tutorial::holds(&world, &tutorial.with_install(&installation.by_helm), async || ()).await;
        installation.is_undone(&world).await;
        world.restart().await;
    }
    let other_pages = async || tutorial::other_pages_hold(&world, &dump, &counted).await;
    tutorial::holds(&world, &tutorial, other_pages).await;

    let before = Before::take(&world.lab).await;
    assert!(world.run(&check).await.contains("proposed object"));
    world.run(&install).await;
    let told = world.run(&use_it).await;
    assert!(told.contains("istio becomes Ready") && told.contains("istio: Ready"), "{told}");
    let prometheus = Prometheus::start(&world).await;
    prometheus.sees_a_healthy_cluster(&world).await;
    prometheus.tells_of_trouble(&world).await;
    runbook::holds(&world, operations, &before).await;

    world.down(&look_around).await;
}

#[tokio::test]
async fn the_health_script_passes_its_own_test() {
    let [run] = docs::commands("docs/gitops.md", "the_health_script_passes_its_own_test").unwrap();
    let lua = tokio::task::spawn_blocking(|| provision::lua(say)).await.unwrap().unwrap();
    let terminal = Terminal::open(Path::new("/nowhere/kubeconfig"), &[&lua]).unwrap();
    let said = terminal.run(&run).await.unwrap().stdout;
    assert!(said.ends_with(" cases are as they should be\n"), "{said}");
}
