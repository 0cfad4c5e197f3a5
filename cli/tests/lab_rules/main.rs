//! `kubectl isp rules` on a real cluster with Istio: it names the mode of every kind of pod, finds
//! what is planted, and leaves nothing behind.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod interrupts;
mod planted;
mod pods;
mod world;

use world::World;

#[tokio::test]
async fn the_rules_of_running_pods_are_named_and_explained() {
    let world = World::up("rules").await;
    for (pod, mode, writer) in [
        ("shop/redirect", "REDIRECT", Some("init container istio-init")),
        ("shop/tproxy", "TPROXY", Some("init container istio-init")),
        ("plain/cni", "REDIRECT", Some("Istio's CNI plugin")),
        ("plain/ours", "TPROXY", Some("init container pod-redirect")),
        ("plain/none", "NONE", None),
    ] {
        let told = world.rules(pod, &[]).await;
        let text = told.to_string();
        assert_eq!((told["mode"].as_str(), told["writtenBy"].as_str()), (Some(mode), writer), "{text}");
        assert_eq!(World::codes(&told), Vec::<&str>::new(), "{text}");
        assert_eq!(told["unknown"].as_array().unwrap().len(), 0, "{text}");
        world.expect_no_helper().await;
    }
    planted::a_packet_is_traced(&world).await;
    planted::a_lying_annotation_is_found(&world).await;
    planted::a_loop_is_found(&world).await;
    planted::a_bypass_is_found(&world).await;
    world.refuses().await;
    interrupts::nothing_is_left_behind(&world).await;
}
