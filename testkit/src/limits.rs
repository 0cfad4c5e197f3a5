//! Limits of the test's own process.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the limit of open files to the highest that this process may have.
pub fn allow_many_files() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
}
