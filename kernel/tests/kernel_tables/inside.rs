//! Runs a test in network namespaces of its own: the test starts this program again inside.

use std::env;

use isp_lab::NetNs;

const MARK: &str = "ISP_KERNEL_TEST_IS_INSIDE";

/// Runs the test with this name in an empty network namespace.
pub(crate) fn inside(test: &str, body: impl FnOnce()) {
    inside_by(&[], test, body);
}

/// Runs the test with this name in an empty network namespace of a new user namespace, where some
/// socket options are refused.
pub(crate) fn inside_user_namespace(test: &str, body: impl FnOnce()) {
    inside_by(&["unshare", "--user", "--map-root-user", "--net", "--"], test, body);
}

/// Runs the test with this name without `CAP_NET_ADMIN`.
pub(crate) fn inside_without_rights(test: &str, body: impl FnOnce()) {
    inside_by(&["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", "--"], test, body);
}

fn inside_by(before: &[&str], test: &str, body: impl FnOnce()) {
    if env::var_os(MARK).is_some() {
        return body();
    }
    run(&NetNs::new(&["here"]).unwrap(), "here", before, test);
}

/// Runs the test with this name in one of the namespaces of a world.
pub(crate) fn inside_world(test: &str, world: impl FnOnce() -> (NetNs, &'static str), body: impl FnOnce()) {
    if env::var_os(MARK).is_some() {
        return body();
    }
    let (world, place) = world();
    run(&world, place, &[], test);
}

/// Starts this program again, for one test.
fn run(world: &NetNs, place: &str, before: &[&str], test: &str) {
    let program = env::current_exe().unwrap();
    let arguments = [before, &[program.to_str().unwrap(), "--exact", test, "--nocapture"]].concat();
    let output = world.command(place, &arguments).env(MARK, "1").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    // A misspelt name would run nothing.
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}\n{complained}");
}
