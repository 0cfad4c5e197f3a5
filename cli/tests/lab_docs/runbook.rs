//! docs/operations.md: the commands of its runbook, and the way out without an operator.

use isp_lab::docs::Block;
use isp_testkit::control_plane::SYSTEM;
use isp_testkit::until;
use serde_json::Value;

use super::before::Before;
use super::world::World;

/// The object of the sample is there.
pub(crate) async fn holds(world: &World, page: [Block; 6], before: &Before) {
    let [install, wave, mark, leader, certificates, uninstall] = page;
    world.run(&install).await;

    let told = world.run(&wave).await;
    for part in ["work-1", "work-2", "[pod/proxy-agent-default-"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    a_mark_is_removed(world, &mark).await;
    assert!(world.run(&leader).await.contains("lease.coordination.k8s.io/sourcepreserve-operator"));
    an_authority_is_made_anew(world, &certificates).await;

    let told = world.run(&uninstall).await;
    assert!(told.contains("let-object-go ingresssourcepreserve/istio"), "{told}");
    before.expect_again(&world.lab).await;
    let left = world.lab.kubectl(["get", "isp,isn", "-o", "name"]).await.unwrap().stdout;
    assert_eq!(left, "");
}

async fn a_mark_is_removed(world: &World, mark: &Block) {
    let set = ["annotate", "node", "work-1", "sourcepreserve.io/agent-failed=by a test"];
    world.lab.kubectl(set).await.unwrap();
    world.run(mark).await;
    let node = world.lab.kubectl(["get", "node", "work-1", "-o", "json"]).await.unwrap().stdout;
    assert!(!node.contains("agent-failed"), "{node}");
    let ready = ["wait", "--for=condition=Ready", "isp/istio", "--timeout=120s"];
    world.lab.kubectl(ready).await.unwrap();
}

/// Another authority comes, and API servers are told to trust it.
async fn an_authority_is_made_anew(world: &World, certificates: &Block) {
    let before = trusted(world).await;
    world.run(certificates).await;
    until("there is another authority, and it is trusted", async || {
        let now = trusted(world).await;
        let other = now.iter().zip(&before).all(|(now, before)| now.is_string() && now != before);
        if other { Ok(()) } else { Err((before.clone(), now)) }
    })
    .await;
}

/// The authority in the Secret, and by what the webhook is trusted.
async fn trusted(world: &World) -> [Value; 2] {
    let secret = ["-n", SYSTEM, "get", "secret", "sourcepreserve-webhook-ca", "-o", "json"];
    let secret = world.lab.kubectl(secret).await.unwrap().stdout;
    let secret: Value = serde_json::from_str(&secret).unwrap();
    let configuration = ["get", "validatingwebhookconfiguration", "sourcepreserve.io", "-o", "json"];
    let configuration = world.lab.kubectl(configuration).await.unwrap().stdout;
    let configuration: Value = serde_json::from_str(&configuration).unwrap();
    [secret["data"]["ca.crt"].clone(), configuration["webhooks"][0]["clientConfig"]["caBundle"].clone()]
}
