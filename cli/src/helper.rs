//! Short-lived helper pods: `rules` reads packet rules with one, `probe` sends requests with
//! several. They are deleted whatever happens.
//!
//! | module | knows |
//! |---|---|
//! | `access` | whether the user has the rights |
//! | `kind` | labels, names and age: which pods are helpers of a command; pure |
//! | `manifest` | what all helper pods have in common; pure |
//! | `state` | how far a pod is, from its status; pure |
//! | `pods` | creates, waits for, reads and deletes helper pods |
//! | `interrupt` | signals |
//! | `image` | the images of the installed programs |

pub(crate) mod access;
mod error;
pub(crate) mod image;
pub(crate) mod interrupt;
pub(crate) mod kind;
pub(crate) mod manifest;
pub(crate) mod pods;
mod state;

pub(crate) use self::error::HelperError;
pub(crate) use self::interrupt::Interrupt;
pub(crate) use self::kind::Kind;
pub(crate) use self::pods::{Goal, Helpers};
