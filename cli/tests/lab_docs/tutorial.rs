//! docs/tutorial.md, step by step, with the files of a release and no checkout.

use isp_lab::docs::Block;
use serde_json::Value;

use super::before::Before;
use super::world::{CLIENT, World, pod_elsewhere};

/// The commands of the page, and its examples.
pub(crate) struct Tutorial {
    pub(crate) commands: [Block; 11],
    pub(crate) examples: Vec<String>,
}

/// The position of the commands that install.
const INSTALL: usize = 4;

impl Tutorial {
    /// The same with another way to install.
    pub(crate) fn with_install(&self, install: &Block) -> Self {
        let mut commands = self.commands.clone();
        commands[INSTALL] = install.clone();
        Self { commands, examples: self.examples.clone() }
    }
}

/// Everything is as the page says. `meanwhile` runs while the object is there and all is well.
pub(crate) async fn holds(world: &World, tutorial: &Tutorial, meanwhile: impl AsyncFnOnce()) {
    let [check, see, pods, choose, install, plan, apply, wait, look, sidecars, go_back] = &tutorial.commands;
    // Step 2 has something to do.
    let unlabel = ["label", "node", "edge-1", "node-role.kubernetes.io/ingress-"];
    world.lab.kubectl(unlabel).await.unwrap();

    let told = world.run_with_release(check).await;
    let lost_at = "loses the source IP at every node that a client connects to";
    assert!(told.contains(&format!("Service istio-system/istio-ingressgateway {lost_at}")), "{told}");
    for part in ["mode Filter fits: ", "kubectl label node edge-1 node-role.kubernetes.io/ingress="] {
        assert!(told.contains(part), "{part}: {told}");
    }
    lost(world, see).await;
    assert!(world.run_with_release(see).await.contains("istio-ingressgateway"));
    assert!(world.run_with_release(pods).await.contains(" edge-1 "));

    world.run_with_release(choose).await;
    let before = Before::take(&world.lab).await;
    world.run_with_release(install).await;
    let [object, fragment] = &tutorial.examples[..] else { panic!("two examples") };
    world.release.terminal.save("istio.yaml", object).unwrap();
    let told = world.run_with_release(plan).await;
    assert!(
        told.contains("istio becomes Ready") && told.contains("set externalTrafficPolicy=Local on Service "),
        "{told}"
    );
    before.expect_again(&world.lab).await;

    world.run_with_release(apply).await;
    world.run_with_release(wait).await;
    for (place, address) in [CLIENT, pod_elsewhere()] {
        world.expect_logged(&place, see, address).await;
    }
    let told = world.run_with_release(look).await;
    for part in ["Ready", "work-2", "ClusterOnly", "in the kernel"] {
        assert!(told.contains(part), "{part}: {told}");
    }

    applications_see_it(world, [object, fragment], sidecars).await;
    meanwhile().await;

    world.run_with_release(go_back).await;
    before.expect_again(&world.lab).await;
    lost(world, see).await;
}

/// What other pages have for such a cluster: docs/doctor.md and docs/webhook.md.
pub(crate) async fn other_pages_hold(world: &World, dump: &Block, counted: &Block) {
    let told = world.run(dump).await;
    // That there is no policy, a dump does not tell from its being left out.
    let note = told.starts_with("note ISP901  Kind AuthorizationPolicy");
    assert!(note && told.contains("\n1 note; examined 1 IngressSourcePreserve"), "{told}");
    let told: Value = serde_json::from_str(&world.run(counted).await).unwrap();
    let shown: Value = serde_json::from_str(&counted.printed()).unwrap();
    let fields = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!((told["matching"].as_u64(), told["consistent"].as_u64()), (Some(1), Some(1)), "{told}");
    assert!(fields(&told).iter().all(|field| fields(&shown).contains(field)), "{told} {shown}");
}

/// The log shows the ingress node in the place of the client.
async fn lost(world: &World, see: &Block) {
    world.expect_logged(&CLIENT.0, see, "10.244.1.1").await;
}

/// Before, an application behind a sidecar takes that for its peer; then the gateway.
async fn applications_see_it(world: &World, [object, fragment]: [&String; 2], sidecars: &Block) {
    let parse = |text: &str| serde_yaml::from_str::<Value>(text).unwrap();
    let (mut object, fragment) = (parse(object), parse(fragment));
    object["spec"]["sidecars"] = fragment["spec"]["sidecars"].clone();
    world.release.terminal.save("istio.yaml", &serde_yaml::to_string(&object).unwrap()).unwrap();
    world.expect_peer("a sidecar", |peer| peer.is_loopback()).await;
    let told = world.run_with_release(sidecars).await;
    assert!(told.contains("kubectl rollout restart -n shop deployment/cart"), "{told}");
    world.rolled_out().await;
    world.expect_peer("the gateway", |peer| !peer.is_loopback()).await;
    let consistent = ["wait", "--for=condition=SidecarsConsistent", "isp/istio", "--timeout=60s"];
    world.lab.kubectl(consistent).await.unwrap();
}
