//! Faults that are planted into the rules and the manifests of running pods.

use serde_json::{Value, json};

use super::world::World;

const REDIRECT: &str = "shop/redirect";
const ANNOTATION: &str = "sidecar.istio.io/interceptionMode";

pub(crate) async fn a_packet_is_traced(world: &World) {
    for (pod, packet, outcome) in [
        (REDIRECT, "tcp 203.0.113.5 -> :8080", delivered(15006, "REDIRECT")),
        (REDIRECT, "tcp 203.0.113.5 -> :15021", delivered(15021, "ITSELF")),
        (REDIRECT, "tcp uid 2000 gid 2000 -> 198.51.100.7:443", delivered(15001, "REDIRECT")),
        ("shop/tproxy", "tcp 203.0.113.5 -> :8080", delivered(15006, "TPROXY")),
        ("plain/ours", "tcp 203.0.113.5 -> :8080", delivered(15006, "TPROXY")),
        ("plain/none", "tcp 203.0.113.5 -> :8080", delivered(8080, "ITSELF")),
    ] {
        let told = world.rules(pod, &["--packet", packet]).await;
        assert_eq!(told["packet"]["outcome"], outcome, "{pod} {packet}: {told}");
    }
    let text = world.run(REDIRECT, &["--packet", "tcp 203.0.113.5 -> :8080", "--raw"]).await.stdout;
    for words in ["redirected to port 15006 (REDIRECT)", "redirect to :15001", "chain ISTIO_OUTPUT"] {
        assert!(text.contains(words), "{text}");
    }
}

fn delivered(port: u16, by: &str) -> Value {
    json!({"kind": "delivered", "port": port, "by": by})
}

pub(crate) async fn a_lying_annotation_is_found(world: &World) {
    annotate(world, &format!("{ANNOTATION}=TPROXY")).await;
    assert_eq!(World::codes(&world.rules(REDIRECT, &[]).await), ["ModeDiffers"]);
    assert_eq!(world.doctor().await, ["Pod shop/redirect"]);
    annotate(world, &format!("{ANNOTATION}-")).await;
    assert_eq!(world.doctor().await, Vec::<String>::new());
    assert_eq!(World::codes(&world.rules(REDIRECT, &[]).await), Vec::<&str>::new());
}

async fn annotate(world: &World, annotation: &str) {
    world
        .lab
        .kubectl(["-n", "shop", "annotate", "pod", "redirect", "--overwrite", annotation])
        .await
        .unwrap();
}

/// The proxy's own connections are no longer exempt.
pub(crate) async fn a_loop_is_found(world: &World) {
    let iptables = iptables(world).await;
    let listed = world.exec(REDIRECT, &[iptables, "-t", "nat", "-S", "ISTIO_OUTPUT"]).await;
    let exempting =
        listed.lines().filter(|line| line.ends_with("owner 1337 -j RETURN") && !line.contains('!'));
    let exempting: Vec<&str> = exempting.collect();
    assert!(!exempting.is_empty(), "{listed}");
    for rule in &exempting {
        change(world, iptables, &rule.replacen("-A", "-D", 1)).await;
    }
    let told = world.rules(REDIRECT, &[]).await;
    assert_eq!(World::codes(&told), ["Loop"], "{told}");
    assert!(told["findings"][0]["message"].as_str().unwrap().contains("port 15001"), "{told}");
    // Before the rule that redirects the rest.
    for rule in exempting {
        change(world, iptables, &rule.replacen("-A ISTIO_OUTPUT", "-I ISTIO_OUTPUT 4", 1)).await;
    }
    assert_eq!(World::codes(&world.rules(REDIRECT, &[]).await), Vec::<&str>::new());
}

/// A rule leaves the application's port out.
pub(crate) async fn a_bypass_is_found(world: &World) {
    let iptables = iptables(world).await;
    change(world, iptables, "-I ISTIO_INBOUND 1 -p tcp --dport 8080 -j RETURN").await;
    let told = world.rules(REDIRECT, &[]).await;
    assert_eq!(World::codes(&told), ["InboundBypass"], "{told}");
    change(world, iptables, "-D ISTIO_INBOUND -p tcp --dport 8080 -j RETURN").await;
    assert_eq!(World::codes(&world.rules(REDIRECT, &[]).await), Vec::<&str>::new());
}

async fn change(world: &World, iptables: &str, rule: &str) {
    let words: Vec<&str> = rule.split_whitespace().collect();
    world.exec(REDIRECT, &[&[iptables, "-t", "nat"], &words[..]].concat()).await;
}

/// The flavour that Istio has chosen.
async fn iptables(world: &World) -> &'static str {
    let told = world.rules(REDIRECT, &[]).await;
    match told["backEnds"][0].as_str() {
        Some("iptables-legacy") => "iptables-legacy",
        _ => "iptables-nft",
    }
}
