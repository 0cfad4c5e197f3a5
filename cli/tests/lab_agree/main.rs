//! A cluster with Istio, broken in three ways and then sound: `check`, `trace`, `report` and
//! `probe` agree with each other and with what the kernel captures on the way of a real connection.
//!
//! | state | the source IP is lost |
//! |---|---|
//! | before the object | at the node that a client connects to (SNAT) |
//! | with the object, sidecar in mode REDIRECT | at the sidecar: the application sees 127.0.0.6 |
//! | with the object, sidecar in mode TPROXY | nowhere |
//! | the same, with NAT on the router outside | before the first node, which no object shows |
//!
//! The reports of the first and of the sound state are also opened in a browser.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod capture;
mod pages;
mod told;
mod world;

use capture::{Captured, capture};
use told::{Hop, check, doctor, probe, report, trace};
use world::{GATEWAY, REGISTRY, Service, World};

#[tokio::test]
async fn all_commands_agree_with_each_other_and_with_captures() {
    let world = World::up("agree").await;
    agree(&world, &GATEWAY, Some(Hop::Node)).await;
    let file = ["-f", world.file.to_str().unwrap()];
    let before = pages::save(&world, "before", &file).await;
    let picture = pages::save(&world, "picture", &[&file[..], &["--service", GATEWAY.name]].concat()).await;

    world.preserve().await;
    agree(&world, &REGISTRY, Some(Hop::Sidecar)).await;

    world.make_transparent().await;
    let sound = pages::save(&world, "sound", &[]).await;
    for service in [&GATEWAY, &REGISTRY] {
        agree(&world, service, None).await;
    }
    doctor::expect_no_fault(&world).await;
    check::expect_no_fault(&world).await;

    world.translate_outside().await;
    agree(&world, &REGISTRY, Some(Hop::BeforeFirstNode)).await;

    pages::look_at([before, sound], picture).await;
}

/// Everybody says where the source IP is lost. The commands that only read know the cluster alone:
/// they tell what becomes of the address that arrives at it, and that they cannot tell more.
async fn agree(world: &World, service: &Service, lost: Option<Hop>) {
    let captured: Captured = capture(world, service, lost).await;
    println!("{}: {captured:?}", service.name);
    assert_eq!(captured.lost(), lost, "{}: {captured:?}", service.name);
    let inside = lost.filter(|hop| *hop != Hop::BeforeFirstNode);
    check::expect(world, service, inside).await;
    trace::expect(world, service, inside, &captured).await;
    report::expect(world, service, inside, &captured).await;
    probe::expect(world, service, lost, &captured).await;
}
