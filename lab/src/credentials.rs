//! Certificates, token keys and kubeconfigs of a cluster, in one directory with kubeadm's layout.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::pki::{Authority, Pair, PkiError, Usage, token_keys, write_private};

/// A directory of credentials.
#[derive(Debug, Clone)]
pub(crate) struct Credentials {
    directory: PathBuf,
}

/// The kubeconfigs to create, as (file name, user, group). People and tests use `admin`.
const USERS: [(&str, &str, Option<&str>); 4] = [
    ("admin", "kubernetes-admin", Some("system:masters")),
    ("controller-manager", "system:kube-controller-manager", None),
    ("scheduler", "system:kube-scheduler", None),
    // For setups where kube-proxy has a client certificate instead of a ServiceAccount.
    ("kube-proxy", "system:kube-proxy", None),
];

/// The user that the API server authenticates as to kubelets. A role binding authorizes it.
pub(crate) const KUBELET_CLIENT: &str = "kube-apiserver-kubelet-client";

/// The CAs of a cluster while its credentials are issued.
pub(crate) struct Issuing {
    credentials: Credentials,
    cluster: Authority,
}

impl Credentials {
    /// Opens an existing directory.
    pub(crate) fn at(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Issues the control plane's credentials. `names` are the API server's names and addresses,
    /// `server` is its URL for the cluster's own components.
    pub(crate) fn create(directory: PathBuf, names: Vec<String>, server: &str) -> Result<Issuing, PkiError> {
        fs::create_dir_all(&directory)
            .map_err(|source| PkiError::Write { path: directory.clone(), source })?;
        let files = Self { directory };
        let cluster = Authority::new("kubernetes")?;
        let front = Authority::new("front-proxy-ca")?;
        let etcd = Authority::new("etcd-ca")?;
        files.authority("ca", &cluster)?;
        files.authority("front-proxy-ca", &front)?;
        files.authority("etcd-ca", &etcd)?;

        let loopback = || vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        files.pair("apiserver", &cluster.issue("kube-apiserver", None, names, Usage::Server)?)?;
        files.pair("kubelet-client", &cluster.issue(KUBELET_CLIENT, None, vec![], Usage::Client)?)?;
        files.pair("front-proxy-client", &front.issue("front-proxy-client", None, vec![], Usage::Client)?)?;
        files.pair("etcd", &etcd.issue("etcd", None, loopback(), Usage::Both)?)?;
        files.pair("etcd-client", &etcd.issue("kube-apiserver", None, vec![], Usage::Client)?)?;
        let (public, private) = token_keys()?;
        write_private(&files.path("sa.pub"), &public)?;
        write_private(&files.path("sa.key"), &private)?;

        let issuing = Issuing { credentials: files, cluster };
        for (file, user, group) in USERS {
            issuing.kubeconfig(file, user, group, server)?;
        }
        Ok(issuing)
    }

    /// The path of a file in the directory.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }

    /// The path as text, for a flag.
    pub(crate) fn file(&self, file: &str) -> String {
        self.path(file).display().to_string()
    }

    /// The path of a user's kubeconfig.
    pub(crate) fn kubeconfig_path(&self, user: &str) -> PathBuf {
        self.path(&format!("{user}.kubeconfig"))
    }

    fn authority(&self, name: &str, authority: &Authority) -> Result<(), PkiError> {
        self.pair(name, &Pair { certificate: authority.certificate.clone(), key: authority.key() })
    }

    fn pair(&self, name: &str, pair: &Pair) -> Result<(), PkiError> {
        write_private(&self.path(&format!("{name}.crt")), &pair.certificate)?;
        write_private(&self.path(&format!("{name}.key")), &pair.key)
    }

    /// Copies a kubeconfig with another URL of the API server.
    pub(crate) fn readdress(&self, user: &str, server: &str, to: &Path) -> Result<(), PkiError> {
        self.copy(user, to, |config| config["clusters"][0]["cluster"]["server"] = server.into())
    }

    /// Copies a kubeconfig with a token instead of the user's certificate.
    pub(crate) fn with_token(&self, user: &str, token: &str, to: &Path) -> Result<(), PkiError> {
        self.copy(user, to, |config| config["users"][0]["user"] = json!({"token": token}))
    }

    fn copy(
        &self,
        user: &str,
        to: &Path,
        change: impl FnOnce(&mut serde_json::Value),
    ) -> Result<(), PkiError> {
        let from = self.kubeconfig_path(user);
        let fail = |source| PkiError::Write { path: to.to_owned(), source };
        let text = fs::read_to_string(&from).map_err(fail)?;
        let mut config = serde_json::from_str(&text).map_err(|error| fail(error.into()))?;
        change(&mut config);
        write_private(to, &format!("{config:#}\n"))
    }
}

impl Issuing {
    /// Issues a node's credentials: a serving certificate, and a kubeconfig for the Node
    /// authorizer.
    pub(crate) fn node(&self, name: &str, addresses: Vec<String>, server: &str) -> Result<(), PkiError> {
        let names = addresses.into_iter().chain([name.to_owned()]).collect();
        let serving = self.cluster.issue(&format!("system:node:{name}"), None, names, Usage::Server)?;
        self.credentials.pair(&format!("kubelet-{name}"), &serving)?;
        self.kubeconfig(name, &format!("system:node:{name}"), Some("system:nodes"), server)
    }

    /// Drops the CAs and returns the issued credentials.
    pub(crate) fn finish(self) -> Credentials {
        self.credentials
    }

    fn kubeconfig(&self, file: &str, user: &str, group: Option<&str>, server: &str) -> Result<(), PkiError> {
        let pair = self.cluster.issue(user, group, vec![], Usage::Client)?;
        let config = kubeconfig(&self.cluster.certificate, user, &pair, server);
        write_private(&self.credentials.kubeconfig_path(file), &format!("{config:#}\n"))
    }
}

/// A kubeconfig as JSON, which is valid YAML.
fn kubeconfig(authority: &str, user: &str, pair: &Pair, server: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {
            "server": server,
            "certificate-authority-data": STANDARD.encode(authority),
        }}],
        "users": [{"name": user, "user": {
            "client-certificate-data": STANDARD.encode(&pair.certificate),
            "client-key-data": STANDARD.encode(&pair.key),
        }}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": user}}],
        "current-context": "lab",
    })
}
