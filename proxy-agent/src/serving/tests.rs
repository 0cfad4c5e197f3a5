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
        let kubeconfig = self.original.path().join("kubeconfig.conf");
        mirror(&kubeconfig, ADDRESS, &self.identity, self.serving.path()).unwrap();
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
    assert!(second != first, "one that is damaged is made anew");
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
