//! What should be done next, and what is to be said about it: [`plan`](plan()) is a pure function of the cluster.
//!
//! | module | knows |
//! |---|---|
//! | [`cluster`] | the facts that decisions are made from, and nothing else of the objects they come from |
//! | [`observe`] | how Kubernetes objects become facts |
//! | [`record`] | what is written down on objects, so that nothing is lost with a status or a process |
//! | [`ownership`] | who has declared a field, and who merely happens to own it |
//! | [`own`] | the kinds of objects that the operator writes whole |
//! | [`action`] | one kind of action for each kind of write, and the request that carries it out |
//! | [`waits`] | how long something has lasted, by one clock |
//! | [`plan`](mod@plan) | all order, all interlocks, all conflict rules |
//! | [`simulate`] | what would come of it, on a cluster that does as it is told |
//!
//! The rule that everything here rests on: **the actions of one plan may be carried out in any order, and any of them may
//! fail.** Order comes from planning again: an action is planned when the facts, and not an action before it, allow it. So a
//! crash between any two writes resumes, and a lost event only delays.

pub mod action;
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
