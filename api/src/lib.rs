//! The `sourcepreserve.io` API: the types that users write and programs report, and their
//! semantics.
//!
//! The crate contains only types and pure functions. It opens no connections, reads no clock and
//! starts no tasks. The operator, the webhook, the agent and the kubectl plugin share it, so that
//! they cannot disagree.
//!
//! | module | content |
//! |---|---|
//! | [`names`] | labels, annotations, finalizer, field managers and condition types |
//! | [`preserve`] | IngressSourcePreserve: the requested configuration and its status |
//! | [`node`] | IngressSourceNode: the acknowledgements of one node's agent |
//! | [`view`] | which parts of the preserved Services a node may see |
//! | [`sidecar`] | which pods get Istio's interception mode, and which have it |
//! | [`age`] | the order of objects by age |
//! | [`claims`] | the object that each Service belongs to |
//! | [`validate`] | conflicts between objects that are each valid |
//! | [`selector`] | label selectors: parsing and schema |
//! | [`conditions`], [`Reason`] | recording of conditions; the reasons of conditions and Events |
//! | [`crd`] | the CustomResourceDefinitions to install |

#![allow(
    clippy::doc_markdown,
    reason = "the docs of fields are what kubectl explain prints, and Kubernetes writes its kinds without backticks"
)]

pub mod age;
pub mod claims;
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
