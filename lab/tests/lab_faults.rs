//! A problem with the machine or the arguments gives one clear error, and leaves nothing
//! half-started.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use isp_lab::{Lab, LabError};
use isp_testkit::until;

/// A command of the lab's program, as users run it.
fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isp-lab"));
    command.args(arguments);
    command
}

fn error_of(command: &mut Command) -> String {
    let Output { status, stderr, .. } = command.output().unwrap();
    let text = String::from_utf8(stderr).unwrap();
    assert!(!status.success(), "{text}");
    text.lines().skip_while(|line| !line.starts_with("error:")).collect::<Vec<_>>().join("\n")
}

fn assert_says(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
}

fn assert_not_there(name: &str) {
    assert!(isp_lab::list().unwrap().iter().all(|(lab, _)| lab != name), "lab {name} was left behind");
}

#[test]
fn bad_arguments_are_refused_before_anything_starts() {
    for (arguments, parts) in [
        (&["up", "--name", "../x"][..], &["\"../x\"", "DNS label"][..]),
        (&["up", "--nodes", "edge-1,edge-1"], &["edge-1 is listed twice"]),
        (&["up", "--nodes", "router"], &["\"router\"", "is reserved"]),
        (&["up", "--nodes", "Edge"], &["\"Edge\"", "lower-case"]),
        (&["up", "--ingress-nodes", "other"], &["ingress node other is not among the nodes"]),
        (&["up", "--kubernetes", "1.20.0"], &["1.20.0", "1.37.0, 1.33.13"]),
        (&["kubectl", "--name", "absent", "get", "nodes"], &["lab absent does not exist", "`up`"]),
        (&["exec", "pod/only-one-part", "true"], &["pod/<namespace>/<name>"]),
    ] {
        assert_says(&error_of(&mut lab(arguments)), parts);
    }
}

#[test]
fn a_port_in_use_is_named_with_the_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let error = error_of(&mut lab(&["up", "--name", "port", "--api-port", &port]));
    assert_says(
        &error,
        &[&format!("127.0.0.1:{port}"), "Address already in use", "--api-port", "logs of all components"],
    );
    assert_not_there("port");
}

#[test]
fn a_full_disk_is_named_with_what_it_takes() {
    let directory = tempfile::tempdir().unwrap();
    let _small = Tmpfs::mount(directory.path());
    let error = error_of(lab(&["up", "--name", "disk"]).env("ISP_STATE_DIR", directory.path()));
    assert_says(
        &error,
        &["MiB free", "MiB are needed to run a lab", &directory.path().display().to_string()],
    );

    let error = error_of(lab(&["provision", "--for", "api"]).env("ISP_CACHE_DIR", directory.path()));
    assert_says(&error, &["MiB free", "build the cluster's programs", "GOCACHE"]);
}

#[test]
fn a_missing_program_is_named() {
    let directory = tempfile::tempdir().unwrap();
    // A lab without the `echo` program beside it.
    let alone = directory.path().join("isp-lab");
    fs::copy(env!("CARGO_BIN_EXE_isp-lab"), &alone).unwrap();
    let error = error_of(Command::new(&alone).args(["up", "--name", "alone"]));
    assert_says(&error, &["echo", "has not been built", "cargo build"]);
    assert_not_there("alone");

    // A machine without Go.
    let empty = directory.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let error = error_of(
        lab(&["provision", "--for", "api"])
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("ISP_CACHE_DIR", &empty),
    );
    assert_says(&error, &["`go` was not found", "kube-apiserver", "Go 1.26 or newer"]);
}

/// This kernel has every feature, so a fake `ip` fails as it would on a kernel that lacks one.
#[test]
fn a_kernel_without_a_feature_is_told_by_the_step_that_failed() {
    let directory = tempfile::tempdir().unwrap();
    let ip = directory.path().join("ip");
    fs::write(&ip, "#!/bin/sh\necho 'RTNETLINK answers: Operation not supported' >&2\nexit 2\n").unwrap();
    fs::set_permissions(&ip, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
    let error = error_of(lab(&["up", "--name", "kernel"]).env("PATH", path));
    assert_says(&error, &["control-plane", "Operation not supported", "the kernel needs veth, bridge"]);
    assert_not_there("kernel");
}

#[tokio::test]
async fn a_second_lab_of_the_same_name_is_refused_and_the_first_goes_on() {
    let first = Lab::builder().name("same").nodes(["edge-1"]).up().await.unwrap();
    let Err(error) = Lab::builder().name("same").up().await else { panic!("a second lab came up") };
    assert!(matches!(&error, LabError::Running(name) if name == "same"), "{error}");
    first.kubectl(["get", "nodes"]).await.unwrap();
    the_command_line_reaches_it();

    // A killed component is restarted, and the cluster recovers.
    first.kill_component("kube-apiserver").await.unwrap();
    // The killed one may still answer for a moment.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    until("the API server comes back", async || {
        first.kubectl(["get", "nodes", "--request-timeout=2s"]).await.map_err(|error| error.to_string())
    })
    .await;
    assert!(first.kill_component("no-such-thing").await.is_err());
    let status = first.status().await.unwrap().join("\n");
    assert!(status.contains("kube-apiserver") && status.contains("1 restarts"), "{status}");
}

/// Checks the output of each command for the running lab `same`.
fn the_command_line_reaches_it() {
    for (arguments, expected) in [
        (&["kubeconfig"][..], "/labs/same/kubeconfig"),
        (&["status"], "edge-1/kubelet"),
        (&["logs", "kube-apiserver"], "Serving securely"),
        (&["kubectl", "--", "get", "nodes"], "edge-1"),
        (&["exec", "edge-1", "--", "ip", "address", "show", "eth0"], "10.90.0.11/24"),
        (&["exec", "client-2", "--", "ip", "address", "show", "eth0"], "203.0.113.10/24"),
        (&["route", "192.0.2.77", "edge-1"], ""),
        (&["exec", "router", "--", "ip", "route", "get", "192.0.2.77"], "via 10.90.0.11"),
    ] {
        let output = lab(&[&["--name", "same"], arguments].concat()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(expected), "{arguments:?}: {output:?}");
    }
}

/// A file system of 8 MiB.
struct Tmpfs<'a>(&'a Path);

impl<'a> Tmpfs<'a> {
    fn mount(path: &'a Path) -> Self {
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(path).status();
        assert!(mount.unwrap().success());
        Self(path)
    }
}

impl Drop for Tmpfs<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}
