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

use crate::error::CommandError;

/// The result of work with helpers that were deleted afterwards. The first error is the cause,
/// but an interruption promises that nothing is left.
pub(crate) fn after_deletion<T>(
    result: Result<T, CommandError>,
    deleted: Result<(), CommandError>,
) -> Result<T, CommandError> {
    match (result, deleted) {
        (Err(CommandError::Helper(HelperError::Interrupted)), Err(left)) => Err(left),
        (Err(cause), _) => Err(cause),
        (Ok(result), deleted) => deleted.map(|()| result),
    }
}
