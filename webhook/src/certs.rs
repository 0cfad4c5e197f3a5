//! Certificates: the CAs that all replicas share, and the certificate of each replica.
//!
//! An API server verifies the webhook with the `caBundle` of its configuration. If bundle and
//! certificate do not match, the webhook is never called. So a CA is replaced in several steps:
//!
//! ```text
//!              stored      + overlap            + overlap
//!  bundles     A           A B         A B      A B        B
//!  signs       A           A           B        B          B
//!                          └ Prepare   └ Promote           └ Forget
//! ```
//!
//! Every replica sees a write within `overlap`, and every API server sees the bundle within
//! `overlap` as well. So at `Promote` every bundle contains B, and at `Forget` no replica serves a
//! certificate of A any more. **No replica switches to a new CA until the bundle with that CA has
//! been published for `overlap`.** [`rotation`] ensures this for planned changes, by the times in
//! the Secret. [`switch`] ensures it for all others (a deleted or replaced Secret, or
//! cert-manager), by the bundles that this replica has requested. Clock skew between replicas
//! shortens `overlap`.
//!
//! | module | knows |
//! |---|---|
//! | `lifespan`, `trust`, `authority` | the validity of a certificate; a set of certificates; a CA with its key |
//! | `rotation` | which step of the rotation is due, and when |
//! | `stored` | the layout of the Secret |
//! | `make` | keys and signatures |
//! | `switch`, `served` | when this replica may use a new CA; its current certificate and CA bundle |
//! | `own`, `issued` | the two sources of certificates: the webhook itself, or cert-manager's Secret |

mod authority;
#[cfg(test)]
pub(crate) mod fixtures;
mod issued;
mod lifespan;
mod make;
mod own;
mod rotation;
mod served;
mod stored;
mod switch;
mod trust;

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

pub(crate) use self::issued::IssuedKeeper;
pub(crate) use self::own::OwnKeeper;
pub(crate) use self::rotation::Lifetimes;
pub use self::rotation::LifetimesError;
pub(crate) use self::served::ServedCertificate;
pub(crate) use self::trust::Trust;

/// Upper limit for sleeps, since the clock may be changed meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// How long to sleep until `time`.
fn wait_until(time: Timestamp) -> Duration {
    let wait = Duration::try_from(time.duration_since(Timestamp::now()));
    wait.unwrap_or_default().min(LONGEST_SLEEP)
}
