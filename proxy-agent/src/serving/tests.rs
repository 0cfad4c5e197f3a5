use super::*;

const ORIGINAL: &str = "
apiVersion: v1
kind: Config
clusters:
- name: default
  cluster:
    server: https://10.0.0.1:6443
    certificate-authority: /ca.crt
users:
- name: default
  user:
    tokenFile: /token
contexts: []
current-context: default
";

#[test]
fn kube_proxy_finds_its_own_files_with_one_of_them_leading_to_the_agent() {
    let (original, serving) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(original.path().join("kubeconfig.conf"), ORIGINAL).unwrap();
    fs::write(original.path().join("config.conf"), "mode: nftables\n").unwrap();
    let address = "127.0.0.1:10260".parse().unwrap();
    Identity::at(serving.path(), address).unwrap();
    let kubeconfig = original.path().join("kubeconfig.conf");
    mirror(&kubeconfig, address, serving.path(), Files::All).unwrap();
    assert_eq!(fs::read_to_string(serving.path().join("config.conf")).unwrap(), "mode: nftables\n");
    let written = Kubeconfig::read_from(serving.path().join("kubeconfig.conf")).unwrap();
    let cluster = written.clusters[0].cluster.as_ref().unwrap();
    assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:10260"));
    assert!(cluster.certificate_authority.is_none() && cluster.certificate_authority_data.is_some());
    assert_eq!(written.auth_infos[0].auth_info.as_ref().unwrap().token_file.as_deref(), Some("/token"));

    // Nothing is written again until something changes.
    let modified = |file: &str| fs::metadata(serving.path().join(file)).unwrap().modified().unwrap();
    let before = (modified("config.conf"), modified("kubeconfig.conf"));
    mirror(&kubeconfig, address, serving.path(), Files::All).unwrap();
    assert_eq!((modified("config.conf"), modified("kubeconfig.conf")), before);
    fs::write(original.path().join("config.conf"), "mode: iptables\n").unwrap();
    mirror(&kubeconfig, address, serving.path(), Files::All).unwrap();
    assert_eq!(fs::read_to_string(serving.path().join("config.conf")).unwrap(), "mode: iptables\n");
}

#[test]
fn of_a_directory_that_kube_proxy_keeps_only_the_kubeconfig_is_taken() {
    let (original, serving) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(original.path().join("kubeconfig"), ORIGINAL).unwrap();
    fs::write(original.path().join("a-key-of-the-node"), "secret").unwrap();
    let address = "127.0.0.1:10260".parse().unwrap();
    Identity::at(serving.path(), address).unwrap();
    mirror(&original.path().join("kubeconfig"), address, serving.path(), Files::Kubeconfig).unwrap();
    assert!(Kubeconfig::read_from(serving.path().join("kubeconfig")).is_ok());
    assert!(!serving.path().join("a-key-of-the-node").exists());
}

#[test]
fn an_agent_that_is_started_again_is_known_by_the_same_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let address = "127.0.0.1:10260".parse().unwrap();
    let files = || [AUTHORITY, CERTIFICATE, KEY].map(|file| fs::read(directory.path().join(file)).unwrap());
    Identity::at(directory.path(), address).unwrap();
    let first = files();
    Identity::at(directory.path(), address).unwrap();
    assert_eq!(files(), first);
    fs::write(directory.path().join(KEY), "damaged").unwrap();
    Identity::at(directory.path(), address).unwrap();
    assert_ne!(files(), first, "what is not whole is made anew");
}
