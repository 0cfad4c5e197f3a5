//! A lab leaves the host as it was: after `down`, and after its init is killed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use isp_lab::{Lab, Place, Protocol};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::ListParams;

/// Everything that a lab could leave behind on the host, one line each.
struct Host(BTreeSet<String>);

impl Host {
    fn look() -> Self {
        let mut found = BTreeSet::new();
        for process in fs::read_dir("/proc").unwrap().flatten() {
            look_at_process(&process.path(), &mut found);
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        // The first fields are ids that the kernel may reassign.
        found.extend(mounts.lines().map(|line| format!("mount {}", line.splitn(4, ' ').last().unwrap())));
        for link in fs::read_dir("/sys/class/net").unwrap().flatten() {
            found.insert(format!("link {}", link.file_name().to_string_lossy()));
        }
        let tables = Command::new("nft").args(["list", "tables"]).output().unwrap();
        found.extend(String::from_utf8(tables.stdout).unwrap().lines().map(|table| format!("nft {table}")));
        found.extend(control_groups(Path::new("/sys/fs/cgroup")));
        found
            .extend(isp_lab::list().unwrap().into_iter().map(|(name, _)| format!("directory of lab {name}")));
        Self(found)
    }

    /// What exists now but did not before. Anything that has ended meanwhile did not belong to the
    /// lab.
    fn beyond(&self, before: &Self) -> Vec<String> {
        self.0.difference(&before.0).cloned().collect()
    }
}

/// The namespaces of a process, and the process itself if it runs one of the lab's programs.
fn look_at_process(path: &Path, found: &mut BTreeSet<String>) {
    let line = fs::read(path.join("cmdline")).unwrap_or_default();
    if line.is_empty() {
        // A kernel thread, or dead.
        return;
    }
    for kind in ["pid", "mnt", "net"] {
        if let Ok(namespace) = fs::metadata(path.join("ns").join(kind)) {
            found.insert(format!("{kind} namespace {}", namespace.ino()));
        }
    }
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    if line.contains("ingress-source-preserve") || line.starts_with("/echo ") {
        found.insert(format!("process {} {line}", path.display()));
    }
}

/// Control groups that the lab's containers could be in, anywhere in the tree.
fn control_groups(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(directory) else { return found };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir() && !path.is_symlink())
    {
        let text = path.display().to_string();
        if ["/isp-lab", "/kubepods", "/k8s.io"].iter().any(|name| text.contains(name)) {
            found.push(format!("control group {text}"));
        }
        found.extend(control_groups(&path));
    }
    found
}

/// Waits up to 3 s, because namespaces end shortly after their last process.
async fn assert_nothing_left(before: &Host, when: &str, allowed: impl Fn(&str) -> bool) {
    let started = Instant::now();
    loop {
        let left: Vec<String> =
            Host::look().beyond(before).into_iter().filter(|line| !allowed(line)).collect();
        if left.is_empty() {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(3), "{when} there is still\n{}", left.join("\n"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The number of cycles. `cargo xtask soak lab-cycles` sets twenty.
fn cycles() -> u32 {
    env::var("ISP_SOAK_CYCLES").map_or(2, |text| text.parse().unwrap())
}

#[tokio::test]
async fn up_and_down_again_and_again_leaves_nothing_behind() {
    let before = Host::look();
    for cycle in 1..=cycles() {
        let started = Instant::now();
        let lab = Lab::builder().name("cycle").up().await.unwrap();
        let up = started.elapsed();
        let nodes = Api::<Node>::all(lab.client()).list(&ListParams::default()).await.unwrap();
        assert_eq!(nodes.items.len(), 3);
        let started = Instant::now();
        lab.down().unwrap();
        eprintln!(
            "cycle {cycle}: up in {:.1} s, down in {:.1} s",
            up.as_secs_f32(),
            started.elapsed().as_secs_f32()
        );
        assert_nothing_left(&before, &format!("after cycle {cycle}"), |_| false).await;
    }
}

#[tokio::test]
async fn a_killed_init_takes_everything_with_it_and_the_next_start_cleans_up() {
    let before = Host::look();
    let lab = Lab::builder().name("killed").nodes(["edge-1"]).up().await.unwrap().keep();
    let pid = fs::read_to_string(lab.kubeconfig().with_file_name("init.pid")).unwrap();
    // A program runs in the lab when init is killed.
    let echo = isp_lab::echo_program().unwrap().display().to_string();
    let mut busy = lab.command_in(&Place::Client, &[&echo, "serve"]).await.unwrap();
    let mut busy = busy.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(busy.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("listening"), "{line}");
    assert!(Command::new("kill").args(["-KILL", pid.trim()]).status().unwrap().success());
    busy.wait().unwrap();

    // Empty control groups and the lab's directory stay until the next command for that lab.
    assert_nothing_left(&before, "after init was killed", |line| {
        line.starts_with("control group ") || line == "directory of lab killed"
    })
    .await;
    assert!(Lab::attach("killed").await.is_err());

    let again = Lab::builder().name("killed").nodes(["edge-1"]).up().await.unwrap();
    again.down().unwrap();
    assert_nothing_left(&before, "after the killed lab came back and went", |_| false).await;
}

#[tokio::test]
async fn two_labs_at_once_do_not_disturb_each_other() {
    let one = Lab::builder().name("one").nodes(["edge-1"]).up().await.unwrap();
    let two = Lab::builder().name("two").nodes(["edge-1", "work-1"]).up().await.unwrap();

    // Both labs have the same names and addresses, and each reaches its own.
    for (lab, port) in [(&one, 30080), (&two, 30180)] {
        let app = isp_lab::EchoApp {
            name: lab.name(),
            namespace: "default",
            node: "edge-1",
            node_port: port,
            annotations: &[],
        };
        lab.run_echo(&app).await.unwrap();
    }
    for (lab, port, silent) in [(&one, 30080, 30180), (&two, 30180, 30080)] {
        let started = Instant::now();
        loop {
            let answer =
                lab.ask(&Place::Client, Protocol::Http, &format!("10.90.0.11:{port}")).await.unwrap();
            if let isp_lab::Answer::Seen(seen) = &answer {
                assert_eq!(seen.pod, lab.name());
                break;
            }
            assert!(started.elapsed() < Duration::from_secs(20), "{answer:?}");
        }
        let other = lab.ask(&Place::Client, Protocol::Http, &format!("10.90.0.11:{silent}")).await.unwrap();
        assert_eq!(other.peer(), None);
    }

    two.down().unwrap();
    let pods: Api<Pod> = Api::namespaced(one.client(), "default");
    assert_eq!(pods.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let answer = one.ask(&Place::Client, Protocol::Http, "10.90.0.11:30080").await.unwrap();
    assert!(answer.peer().is_some(), "{answer:?}");
}
