//! How far kube-proxy and the kernel have come with the node's view.

pub(crate) mod programmed;
