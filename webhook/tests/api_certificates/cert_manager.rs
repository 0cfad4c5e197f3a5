//! Certificates issued by cert-manager.

use isp_testkit::until;
use isp_testkit::webhook::{Cluster, Replica, SERVER};
use k8s_openapi::ByteString;
use kube::api::{Patch, PatchParams};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;

use crate::PROGRAM;
use crate::caller::{call, certificates};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Issues a certificate and stores it as cert-manager does. Returns the certificate.
async fn issue(cluster: &Cluster, name: &str, authority: &Authority) -> Vec<u8> {
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, authority).unwrap();
    let bytes = |text: String| ByteString(text.into_bytes());
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": "webhook-tls"},
        "data": {"tls.crt": bytes(leaf.pem()), "tls.key": bytes(key.serialize_pem()), "ca.crt": bytes(authority.pem())},
    });
    let parameters = PatchParams::apply("cert-manager-certificates-issuing");
    cluster.secrets().patch("webhook-tls", &parameters, &Patch::Apply(&secret)).await.unwrap();
    leaf.der().to_vec()
}

#[tokio::test]
async fn what_cert_manager_issues_is_served_and_a_new_authority_is_trusted_first() {
    let cluster = Cluster::start(PROGRAM).await;
    cluster.allow_secret("webhook-tls").await;
    let replica =
        Replica::start(&cluster, &["--certificates=secret", "--secret=webhook-tls", "--overlap=3s"]);
    until("it says that there is none", async || replica.log().contains("has cert-manager created it")).await;
    assert!(!replica.is_ready());

    let (old, new) = (authority(), authority());
    let first = issue(&cluster, SERVER, &old).await;
    replica.wait_ready().await;
    let bundle = async || cluster.bundle().await;
    until("it is trusted", async || certificates(&bundle().await) == [old.der().clone()]).await;
    assert_eq!(call(replica.address, &bundle().await).await.unwrap().to_vec(), first);

    // Renewed by the same CA.
    let second = issue(&cluster, SERVER, &old).await;
    until("the renewed one is served", async || {
        call(replica.address, old.pem().as_bytes()).await.unwrap().to_vec() == second
    })
    .await;

    // A certificate for another name is not served.
    issue(&cluster, "other.default.svc", &old).await;
    until("it says so", async || replica.log().contains("check dnsNames and issuerRef")).await;
    assert_eq!(call(replica.address, old.pem().as_bytes()).await.unwrap().to_vec(), second);

    let third = issue(&cluster, SERVER, &new).await;
    let mut seen_both = false;
    until("the certificate of the new authority is served", async || {
        let bundle = bundle().await;
        let served = call(replica.address, &bundle).await.expect("nobody is turned away meanwhile").to_vec();
        if served == second {
            // A caller with the old bundle must still succeed, unless the switch has just happened.
            if let Err(error) = call(replica.address, old.pem().as_bytes()).await {
                let served = call(replica.address, new.pem().as_bytes()).await;
                assert_eq!(served.expect(&error).to_vec(), third);
            }
        }
        seen_both |= certificates(&bundle).len() == 2 && served == second;
        served == third
    })
    .await;
    assert!(seen_both);
    until("the old one is forgotten", async || certificates(&bundle().await) == [new.der().clone()]).await;
    assert_eq!(call(replica.address, new.pem().as_bytes()).await.unwrap().to_vec(), third);
}
