//! How each node runs kube-proxy.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How a node runs kube-proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum KubeProxy {
    /// As a pod of kubeadm's DaemonSet.
    #[default]
    DaemonSet,
    /// As a process of the node, as k3s does. Nothing in the API shows it.
    Process,
    /// Not at all: Services do not work there.
    None,
}

const WORDS: [(KubeProxy, &str); 3] =
    [(KubeProxy::DaemonSet, "daemonset"), (KubeProxy::Process, "process"), (KubeProxy::None, "none")];

impl fmt::Display for KubeProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        WORDS.iter().filter(|(each, _)| each == self).try_for_each(|(_, word)| f.write_str(word))
    }
}

/// A text that does not say how a node runs kube-proxy.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0:?} does not say how a node runs kube-proxy: use NODE=daemonset, NODE=process or NODE=none")]
pub struct NotKubeProxy(String);

/// A node's name, and how that node runs kube-proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeProxyOn(pub String, pub KubeProxy);

impl FromStr for KubeProxyOn {
    type Err = NotKubeProxy;

    fn from_str(text: &str) -> Result<Self, NotKubeProxy> {
        let parsed = text.split_once('=').and_then(|(node, word)| {
            let (kube_proxy, _) = WORDS.iter().find(|(_, each)| *each == word)?;
            Some(Self(node.to_owned(), *kube_proxy))
        });
        parsed.ok_or_else(|| NotKubeProxy(text.to_owned()))
    }
}

#[test]
fn the_words_are_read_as_they_are_written() {
    for (kube_proxy, word) in WORDS {
        assert_eq!(kube_proxy.to_string(), word);
        assert_eq!(format!("edge-1={word}").parse(), Ok(KubeProxyOn("edge-1".to_owned(), kube_proxy)));
    }
    for bad in ["", "none", "edge-1", "edge-1=pod"] {
        assert_eq!(bad.parse::<KubeProxyOn>(), Err(NotKubeProxy(bad.to_owned())));
    }
}
