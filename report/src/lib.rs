//! A report on a cluster: which paths lead to its Services, and whose address arrives on each.
//!
//! ```text
//!  Report: nodes, Services, paths, policies, findings, Events ──> page::html ──> one HTML file
//!          merge: nodes that behave alike are one path
//! ```
//!
//! The crate knows neither Kubernetes nor packets: `kubectl isp report` fills the values. The page
//! needs no network and no other file, so that it can be sent by mail.

pub mod merge;
pub mod model;
pub mod page;

pub use self::model::Report;
pub use self::page::html;
