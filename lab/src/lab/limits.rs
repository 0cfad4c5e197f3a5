//! Limits of the machine that several clusters reach. They are raised where they are low, and stay
//! so: other programs may rely on the higher value by the time the lab ends.

use std::fs;

use crate::provision::Progress;

/// The inotify instances that one user may have. A cluster of three nodes needs about 40, and Linux
/// allows 128: in the fourth cluster kube-proxy ends with "too many open files".
const INSTANCES: &str = "/proc/sys/fs/inotify/max_user_instances";
const ENOUGH: u32 = 1024;

/// Raises the limits. A machine that does not permit it has room for a few clusters, so that is no
/// error.
pub(super) fn raise(progress: Progress) {
    let now = fs::read_to_string(INSTANCES).unwrap_or_default();
    if !is_low(&now) {
        return;
    }
    match fs::write(INSTANCES, ENOUGH.to_string()) {
        Ok(()) => progress(&format!("raised fs.inotify.max_user_instances from {} to {ENOUGH}", now.trim())),
        Err(error) => progress(&format!(
            "fs.inotify.max_user_instances is {}, and cannot be raised to {ENOUGH}: {error}. Three clusters at once may be too many.",
            now.trim()
        )),
    }
}

/// Whether a limit must be raised. A text that is no number is left alone.
fn is_low(limit: &str) -> bool {
    limit.trim().parse::<u32>().is_ok_and(|limit| limit < ENOUGH)
}

#[test]
fn a_limit_is_raised_and_never_lowered() {
    assert!(is_low("128\n") && is_low("0") && is_low("1023"));
    assert!(!is_low("1024\n") && !is_low("65536") && !is_low("") && !is_low("unlimited"));
}
