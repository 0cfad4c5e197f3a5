//! Computes the next writes and the status to report: [`plan`](plan()) is a pure function of the
//! cluster.
//!
//! | module | responsibility |
//! |---|---|
//! | [`cluster`] | the facts that decisions are based on, reduced from the Kubernetes objects |
//! | [`observe`] | converts Kubernetes objects into facts |
//! | [`record`] | state kept in annotations, so that it survives a lost status or a restart |
//! | [`ownership`] | tells a declared field from one that a manager merely owns |
//! | [`own`] | the kinds of objects that the operator manages entirely |
//! | [`action`] | one action per kind of write, and the API request that performs it |
//! | [`waits`] | durations, measured by one clock |
//! | [`plan`](mod@plan) | all ordering, interlocks and conflict rules |
//! | [`build`] | the resources that the operator writes as a whole |
//! | [`simulate`] | the outcome of plans on an idealised cluster |
//!
//! The invariant of this crate: **the actions of one plan may be executed in any order, and any of
//! them may fail.** Ordering comes from re-planning: an action is planned only when the observed
//! facts permit it, never because an earlier action of the same plan is assumed to have succeeded.
//! The operator therefore resumes after a crash between any two writes, and a lost event only
//! causes a delay.

pub mod action;
pub mod build;
pub mod cluster;
pub mod observe;
pub mod own;
pub mod ownership;
mod placement;
pub mod plan;
pub mod record;
pub mod simulate;
pub mod waits;

pub use action::Action;
pub use cluster::{Cluster, Key};
pub use plan::{Plan, Settings, plan};
pub use waits::Waits;
