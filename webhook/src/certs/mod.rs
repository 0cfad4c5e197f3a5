//! The certificates: the authorities that all replicas share, and the one certificate that each replica serves with.
//!
//! An API server verifies the webhook by the `caBundle` in its configuration. A bundle and a certificate that do not fit are a webhook
//! that is never called, so nothing changes in one step:
//!
//! ```text
//!              stored      + overlap            + overlap
//!  bundles     A           A B         A B      A B        B
//!  signs       A           A           B        B          B
//!                          └ Prepare   └ Promote           └ Forget
//! ```
//!
//! Whatever is written is seen everywhere within `overlap`: by every replica, and through it, in its bundle, by every API server. So at
//! `Promote` every bundle that is in use has B in it, and at `Forget` no replica serves a certificate of A's any more. **No replica
//! switches to a new authority before the bundle that contains it was published `overlap` ago**: [`turn`] sees to it for what is
//! planned, by the times in the Secret; [`Switch`] for what is not (a Secret that was deleted or replaced by hand, or by
//! cert-manager), by what this replica itself has seen. Clocks of replicas that differ shorten `overlap` by the difference.
//!
//! | module | knows |
//! |---|---|
//! | `lifespan`, `trust`, `authority` | when a certificate holds; a set of certificates; an authority with its key |
//! | `turn` | what becomes of the authorities, and when |
//! | `stored` | how they are laid out in the Secret |
//! | `make` | keys and signatures |
//! | `switch`, `desk` | when this replica may change over; what it serves, and what it wants to be trusted |
//! | `own`, `issued` | the two ways to come by certificates: by themselves, or from cert-manager's Secret |

mod authority;
mod desk;
#[cfg(test)]
pub(crate) mod fixtures;
mod issued;
mod lifespan;
mod make;
mod own;
mod stored;
mod switch;
mod trust;
mod turn;

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

pub(crate) use self::desk::Desk;
pub(crate) use self::issued::IssuedKeeper;
pub(crate) use self::own::OwnKeeper;
pub(crate) use self::trust::Trust;
pub(crate) use self::turn::Lifetimes;
pub use self::turn::LifetimesError;

/// Nobody sleeps longer: clocks are set now and then.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// How long to sleep until then.
fn wait_until(time: Timestamp) -> Duration {
    let wait = Duration::try_from(time.duration_since(Timestamp::now()));
    wait.unwrap_or_default().min(LONGEST_SLEEP)
}
