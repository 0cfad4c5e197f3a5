//! The data plane as values: what a node's packet rules are, and nothing about how they get there.
//!
//! ```text
//!  model ──> compile ──> plan of one Service ──> plane ──> operations ──> (netlink bytes, kernel)
//!            choose                              diff
//!                                                identities, slots
//!  node ───> rules: the constant table ────────────┘
//! ```
//!
//! [`nft`] has the values: a table of constant rules, and the elements that vary with Services.
//! [`rules`] makes the table, [`text`] prints it. [`compile`] plans a Service, [`plane`] turns a
//! changed plan into operations on elements, and [`trace`] follows a packet through the result.
//! [`redirect`] has the rules of a pod whose own proxy gets its traffic.
//!
//! This crate does no I/O. It knows no Kubernetes types, no sockets, no clock and no environment.

pub mod choose;
pub mod claims;
pub mod compile;
pub mod diff;
pub mod elements;
pub mod identities;
pub mod layout;
pub mod model;
pub mod netlink;
pub mod nft;
pub mod plane;
pub mod redirect;
pub mod rules;
pub mod ruleset;
pub mod slots;
pub mod text;
pub mod trace;
