//! The `sourcepreserve.io` API: what users write, what the programs answer, and what both mean.
//!
//! The crate holds types and pure functions only. It opens no connection, reads no clock and starts nothing;
//! the operator, the webhook, the agent and the command line share it, so that they cannot disagree.
//!
//! | module | knows |
//! |---|---|
//! | [`names`] | every label, annotation, finalizer, condition type and reason |
//! | [`preserve`] | IngressSourcePreserve: what a user asks for and how far it has come |
//! | [`node`] | IngressSourceNode: what the agent of one node acknowledges |
//! | [`view`] | what one node may see of the preserved Services |
//! | [`sidecar`] | which pods get Istio's interception mode, and which have it |
//! | [`age`] | which of several objects is the older one |
//! | [`agent`] | the DaemonSet of a pool's agents, made from the cluster's kube-proxy |
//! | [`validate`] | what is wrong with a set of objects although each of them alone is right |
//! | [`selector`] | label selectors: reading them, and their schema |
//! | [`conditions`], [`Reason`] | how a condition is recorded; the reasons of conditions and Events |
//! | [`crd`] | the CustomResourceDefinitions as they are installed |

#![allow(
    clippy::doc_markdown,
    reason = "the docs of fields are what kubectl explain prints, and Kubernetes writes its kinds without backticks"
)]

pub mod age;
pub mod agent;
pub mod conditions;
pub mod crd;
pub mod names;
pub mod node;
pub mod preserve;
mod reason;
pub mod selector;
pub mod sidecar;
pub mod validate;
pub mod view;

mod rules;

pub use node::IngressSourceNode;
pub use preserve::IngressSourcePreserve;
pub use reason::Reason;
