use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use kube::config::Kubeconfig;

use super::*;

const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 10260);

fn original(user: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Config
clusters:
- name: default
  cluster:
    server: https://10.0.0.1:6443
    certificate-authority: /ca.crt
users:
{user}
contexts:
- name: default
  context: {{cluster: default, user: kube-proxy}}
current-context: default
"
    )
}

struct Directories {
    original: tempfile::TempDir,
    serving: tempfile::TempDir,
    identity: Identity,
}

impl Directories {
    fn with_user(user: &str) -> Self {
        let (directory, serving) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(directory.path().join("kubeconfig.conf"), original(user)).unwrap();
        let identity = Identity::at(serving.path(), ADDRESS.ip()).unwrap();
        Self { original: directory, serving, identity }
    }

    fn mirror(&self) {
        self.mirror_as(MirrorScope::AllFiles);
    }

    fn mirror_as(&self, scope: MirrorScope) {
        let kubeconfig = self.original.path().join("kubeconfig.conf");
        mirror(&kubeconfig, ADDRESS, &self.identity, self.serving.path(), scope).unwrap();
    }

    fn mirrored(&self) -> Kubeconfig {
        self.mirror();
        Kubeconfig::read_from(self.serving.path().join("kubeconfig.conf")).unwrap()
    }
}

#[test]
fn kube_proxy_finds_its_own_files_with_one_of_them_leading_to_the_agent() {
    let directories = Directories::with_user("- {name: kube-proxy, user: {tokenFile: /token}}");
    let (original, serving) = (directories.original.path(), directories.serving.path());
    fs::write(original.join("config.conf"), "mode: nftables\n").unwrap();
    let written = directories.mirrored();
    assert_eq!(fs::read_to_string(serving.join("config.conf")).unwrap(), "mode: nftables\n");
    let cluster = written.clusters[0].cluster.as_ref().unwrap();
    assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:10260"));
    assert!(cluster.certificate_authority.is_none() && cluster.certificate_authority_data.is_some());
    assert_eq!(cluster.tls_server_name.as_ref(), Some(&directories.identity.name));

    // Nothing is written again until something changes.
    let modified = |file: &str| fs::metadata(serving.join(file)).unwrap().modified().unwrap();
    let before = (modified("config.conf"), modified("kubeconfig.conf"));
    directories.mirror();
    assert_eq!((modified("config.conf"), modified("kubeconfig.conf")), before);
    fs::write(original.join("config.conf"), "mode: iptables\n").unwrap();
    directories.mirror();
    assert_eq!(fs::read_to_string(serving.join("config.conf")).unwrap(), "mode: iptables\n");
}

#[test]
fn kube_proxy_keeps_its_token_and_gets_the_agents_certificate_in_the_place_of_its_own() {
    for (user, token_file) in [
        ("- {name: kube-proxy, user: {tokenFile: /token}}", Some("/token")),
        ("- {name: other, user: {}}\n- {name: kube-proxy, user: {tokenFile: /token}}", Some("/token")),
        ("- {name: kube-proxy, user: {client-certificate: /own.crt, client-key: /own.key}}", None),
        ("- {name: kube-proxy, user: {client-certificate-data: b3du, client-key-data: b3du}}", None),
        ("- {name: other, user: {}}", None),
        ("- {name: kube-proxy}", None),
    ] {
        let directories = Directories::with_user(user);
        let written = directories.mirrored();
        let current = written.auth_infos.iter().find(|named| named.name == "kube-proxy").unwrap();
        let current = current.auth_info.as_ref().unwrap();
        assert_eq!(current.token_file.as_deref(), token_file, "{user}");
        assert!(current.client_certificate.is_none() && current.client_key.is_none(), "{user}");
        let text = |value: serde_json::Value| {
            let bytes: k8s_openapi::ByteString = serde_json::from_value(value).unwrap();
            String::from_utf8(bytes.0).unwrap()
        };
        let current = serde_json::to_value(current).unwrap();
        let client = &directories.identity.client;
        assert_eq!(text(current["client-certificate-data"].clone()), client.certificate, "{user}");
        assert_eq!(text(current["client-key-data"].clone()), client.key, "{user}");
    }
}

#[test]
fn an_agent_that_is_started_again_has_the_same_certificates() {
    let directory = tempfile::tempdir().unwrap();
    let at = || Identity::at(directory.path(), ADDRESS.ip()).unwrap();
    let first = at();
    assert!(at() == first);
    fs::write(directory.path().join(".identity"), "damaged").unwrap();
    let second = at();
    assert!(second != first && second.name != first.name, "one that is damaged is made anew");
    second.tls().unwrap();
}

#[test]
fn nobody_but_the_owner_reads_the_keys() {
    use std::os::unix::fs::PermissionsExt;
    let directories = Directories::with_user("- {name: kube-proxy, user: {tokenFile: /token}}");
    directories.mirror();
    for file in [".identity", "kubeconfig.conf"] {
        let mode = fs::metadata(directories.serving.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

/// Connects with this client certificate and reads the agent's answer.
async fn is_let_in(
    identity: &Identity,
    certificate: Option<&super::identity::CertificateAndKey>,
) -> Result<(), String> {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{PrivateKeyDer, ServerName};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let chain = |pem: &str| crate::filter::upstream::parse_certificates(pem.as_bytes()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(chain(&identity.ca));
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let client = match certificate {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain(&pair.certificate), key).unwrap()
        }
    };
    let (near, far) = tokio::io::duplex(64 * 1024);
    let acceptor = tokio_rustls::TlsAcceptor::from(identity.tls().unwrap());
    let served = tokio::spawn(async move {
        let mut stream = acceptor.accept(far).await.map_err(|error| error.to_string())?;
        stream.write_all(b"served").await.map_err(|error| error.to_string())?;
        stream.shutdown().await.map_err(|error| error.to_string())
    });
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(client));
    let name = ServerName::try_from(identity.name.clone()).unwrap();
    if let Ok(mut stream) = connector.connect(name, near).await {
        let mut said = String::new();
        let read = stream.read_to_string(&mut said).await;
        assert_eq!(read.is_ok(), said == "served");
    }
    served.await.unwrap()
}

#[tokio::test]
async fn the_agent_lets_in_who_has_the_certificate_that_it_made_for_kube_proxy() {
    let identity = |directory: &tempfile::TempDir| Identity::at(directory.path(), ADDRESS.ip()).unwrap();
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (own, other) = (identity(&own), identity(&other));
    is_let_in(&own, Some(&own.client)).await.unwrap();
    let refused = is_let_in(&own, None).await.unwrap_err();
    assert!(refused.contains("no certificates"), "{refused}");
    is_let_in(&own, Some(&other.client)).await.expect_err("another agent's kube-proxy");
    is_let_in(&own, Some(&own.serving)).await.expect_err("the agent's own is for serving");
}

#[test]
fn of_a_directory_that_kube_proxy_keeps_only_the_kubeconfig_is_taken() {
    let directories = Directories::with_user("- {name: kube-proxy, user: {tokenFile: /token}}");
    fs::write(directories.original.path().join("a-key-of-the-node"), "secret").unwrap();
    directories.mirror_as(MirrorScope::Kubeconfig);
    let serving = directories.serving.path();
    assert!(Kubeconfig::read_from(serving.join("kubeconfig.conf")).is_ok());
    assert!(!serving.join("a-key-of-the-node").exists());
}
