//! Replicas that share a Secret.

use isp_testkit::until;
use isp_testkit::webhook::{Cluster, Replica, SECRET, SERVER};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::PROGRAM;
use crate::caller::{call, certificates};

async fn both_verify(cluster: &Cluster, replicas: &[Replica]) -> bool {
    let bundle = cluster.bundle().await;
    let mut all = true;
    for replica in replicas {
        all &= call(replica.address, &bundle).await.is_ok();
    }
    all
}

#[tokio::test]
async fn two_that_start_at_the_same_instant_have_one_authority_and_one_that_is_spoilt_is_replaced() {
    let cluster = Cluster::start(PROGRAM).await;
    let replicas = [Replica::start(&cluster, &["--overlap=3s"]), Replica::start(&cluster, &["--overlap=3s"])];
    for replica in &replicas {
        replica.wait_ready().await;
    }
    until("both verify", async || both_verify(&cluster, &replicas).await).await;
    let authority = cluster.stored("ca.crt").await;
    let bundle = certificates(&cluster.bundle().await);
    assert_eq!(bundle, certificates(authority.as_bytes()), "the bundle is that one alone");
    let served = call(replicas[0].address, authority.as_bytes()).await.unwrap();
    assert_ne!(Ok(served), call(replicas[1].address, authority.as_bytes()).await, "each has its own");
    let ends = replicas[0].metric("isp_webhook_certificate_expiry_seconds{certificate=\"Leaf\"}").unwrap();
    let authority_ends =
        replicas[0].metric("isp_webhook_certificate_expiry_seconds{certificate=\"Authority\"}");
    assert!(ends > 1.7e9 && authority_ends.unwrap() > ends + 300.0 * 86400.0);

    // Verified by Go's TLS stack, which API servers and kubectl use.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &authority).unwrap();
    let address = format!("--server=https://{}", replicas[0].address);
    let authority_file = format!("--certificate-authority={}", file.path().display());
    let name = format!("--tls-server-name={SERVER}");
    let text = cluster.kubectl_error(&["get", "--raw=/nothing", &address, &authority_file, &name]).await;
    assert!(text.contains("NotFound") || text.contains("could not find"), "{text}");

    // A key that does not match.
    let spoilt = json!({"stringData": {"ca.key": "garbage", "note": "of somebody else's"}});
    cluster.secrets().patch(SECRET, &PatchParams::default(), &Patch::Merge(&spoilt)).await.unwrap();
    until("another authority", async || {
        let now = cluster.stored("ca.crt").await;
        assert!(both_verify(&cluster, &replicas).await, "nobody is turned away meanwhile");
        now != authority
    })
    .await;
    let replaced = cluster.stored("ca.crt").await;
    assert_eq!(cluster.stored("note").await, "of somebody else's");
    let loud = |replica: &Replica| {
        replica.log().contains("ca.crt is unusable and will be replaced: the key cannot be read")
    };
    assert!(replicas.iter().any(loud));
    until("both serve with it, and the old one is forgotten", async || {
        assert!(both_verify(&cluster, &replicas).await, "nobody is turned away meanwhile");
        certificates(&cluster.bundle().await) == certificates(replaced.as_bytes())
    })
    .await;

    // The Secret is emptied, as `kubectl replace` with the manifest does.
    let emptied = json!({"data": null});
    cluster.secrets().patch(SECRET, &PatchParams::default(), &Patch::Merge(&emptied)).await.unwrap();
    another_authority_serves(&cluster, &replicas, &replaced).await;
}

/// Waits until another CA signs. The replicas must stay trusted all the time.
async fn another_authority_serves(cluster: &Cluster, replicas: &[Replica], before: &str) {
    until("another authority serves", async || {
        assert!(both_verify(cluster, replicas).await, "nobody is turned away meanwhile");
        let now = cluster.stored("ca.crt").await;
        now != before && !now.is_empty() && call(replicas[0].address, now.as_bytes()).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_secret_that_is_deleted_is_asked_for_and_those_that_serve_go_on_until_it_is_there() {
    let cluster = Cluster::start(PROGRAM).await;
    let lifetimes = ["--overlap=3s", "--leaf-lifetime=45s"];
    let replicas = [Replica::start(&cluster, &lifetimes), Replica::start(&cluster, &lifetimes)];
    for replica in &replicas {
        replica.wait_ready().await;
    }
    until("both verify", async || both_verify(&cluster, &replicas).await).await;
    let before = cluster.stored("ca.crt").await;
    // Applying the manifests again must not change the CA.
    cluster.install().await;
    assert_eq!(cluster.stored("ca.crt").await, before);

    cluster.secrets().delete(SECRET, &DeleteParams::default()).await.unwrap();
    let said = format!("kubectl -n sourcepreserve-system create secret generic {SECRET}");
    for replica in &replicas {
        until("it says what to do", async || replica.log().contains(&said)).await;
    }
    let late = Replica::start(&cluster, &["--overlap=3s"]);
    until("so does one that starts", async || late.log().contains(&said)).await;
    assert!(!late.is_ready(), "it has no certificate");
    assert!(cluster.secrets().get_opt(SECRET).await.unwrap().is_none(), "nobody but its owner makes it");
    assert!(both_verify(&cluster, &replicas).await && replicas.iter().all(Replica::is_ready));

    for replica in &replicas {
        until("its certificate has ended", async || !replica.is_ready()).await;
    }

    cluster.install().await;
    until("another authority serves", async || both_verify(&cluster, &replicas).await).await;
    another_authority_serves(&cluster, &replicas, &before).await;
    for replica in replicas.iter().chain([&late]) {
        replica.wait_ready().await;
    }
    for replica in replicas.iter().chain([&late]) {
        assert!(
            !replica.log().contains("orbidden"),
            "nothing was tried without the right to: {}",
            replica.log()
        );
    }
}

#[tokio::test]
async fn a_secret_of_cert_managers_is_left_alone() {
    let cluster = Cluster::start(PROGRAM).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": SECRET},
        "stringData": {"tls.crt": "certificate", "tls.key": "key"},
    });
    // The type of a Secret is immutable.
    cluster.secrets().delete(SECRET, &DeleteParams::default()).await.unwrap();
    let mine = PatchParams::apply("cert-manager");
    let before = cluster.secrets().patch(SECRET, &mine, &Patch::Apply(&secret)).await.unwrap();
    let replica = Replica::start(&cluster, &[]);
    until("it says so", async || replica.log().contains("--certificates=secret")).await;
    assert!(!replica.is_ready());
    assert!(call(replica.address, b"").await.is_err());
    assert_eq!(cluster.secrets().get(SECRET).await.unwrap(), before);
}
