//! `kubectl isp probe` on a real cluster, before and after an object is applied, in both modes; and
//! interrupted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod interrupts;
mod tables;
mod world;

use serde_json::json;
use world::World;

#[tokio::test]
async fn the_table_shows_the_source_ips_before_and_after_an_apply() {
    let world = World::up("probe").await;
    tables::are_lost(&world).await;
    let before = world.save("before.json").await;
    world.web.install().await;

    world.apply("Filter", json!({"name": "frontend"})).await;
    tables::arrive(&world, "canary").await;
    tables::arrive(&world, "own").await;
    tables::have_changed(&world, &before).await;
    world.delete().await;

    // The agents of mode Beside serve what an object owns: by its labels the canary, too.
    world.apply("Beside", json!({"selector": {"matchLabels": {"tier": "edge"}}})).await;
    tables::arrive(&world, "canary").await;
    tables::arrive(&world, "own").await;
    world.delete().await;

    world.apply("Beside", json!({"name": "frontend"})).await;
    tables::arrive(&world, "own").await;
    world
        .refuses(&["--service", "web/frontend", "--yes"], "probe the Service itself with --target own")
        .await;
}

#[tokio::test]
async fn interrupted_at_any_moment_nothing_is_left_behind() {
    let world = World::up("probe-breaks").await;
    world.refuses(&["--service", "web/absent", "--yes"], "there is no Service web/absent").await;
    world.refuses(&["--service", "web/frontend"], "confirm with y, or with --yes").await;
    world
        .refuses(&["--service", "web/frontend", "--nodes", "gone", "--yes"], "there is no node \"gone\"")
        .await;
    let restricted = ["--service", "web/frontend", "--yes", "--helper-namespace", "restricted"];
    world.refuses(&restricted, "does not admit the helper pod").await;
    interrupts::nothing_is_left_behind(&world).await;
}
