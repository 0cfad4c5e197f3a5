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

use isp_lab::{Answer, Lab, Place, Protocol};
use isp_testkit::{Patience, answers};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::ListParams;

/// The kernel removes namespaces in the background, later on a busy machine.
const SOON: Patience = Patience { limit: Duration::from_secs(30), pause: Duration::from_millis(50) };

/// The labs that these tests start. Others may come and go on the same machine.
const OWN: [&str; 2] = ["cycle", "killed"];

/// Set for a test that sees only its own processes and mounts.
const APART: &str = "ISP_TEST_APART";

/// Runs the test again in process and mount namespaces of its own, so that the processes and mounts
/// it sees belong to it. Returns whether the caller is that second run.
fn is_apart(test: &str) -> bool {
    if env::var_os(APART).is_some() {
        return true;
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "--"]);
    command.arg(env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
    let output = command.env(APART, "yes").output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    assert!(output.status.success(), "{test} failed in its own namespaces:\n{printed}");
    assert!(printed.contains("1 passed"), "{test} did not run:\n{printed}");
    println!("{printed}");
    false
}

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
        let labs = isp_lab::list().unwrap().into_iter().map(|(name, _)| name);
        let own = labs.filter(|name| OWN.contains(&name.as_str()));
        found.extend(own.map(|name| format!("directory of lab {name}")));
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

/// Control groups that the labs' containers could be in, anywhere in the tree, except those that
/// belong to other labs.
fn control_groups(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(directory) else { return found };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir() && !path.is_symlink())
    {
        let text = path.display().to_string();
        let lab = text.split_once("/isp-lab").map(|(_, rest)| rest.split('/').nth(1).unwrap_or_default());
        let is_suspect = ["/kubepods", "/k8s.io"].iter().any(|name| text.contains(name));
        if lab.map_or(is_suspect, |lab| OWN.contains(&lab)) {
            found.push(format!("control group {text}"));
        }
        found.extend(control_groups(&path));
    }
    found
}

/// Waits, because namespaces end shortly after their last process.
async fn assert_nothing_left(before: &Host, when: &str, allowed: impl Fn(&str) -> bool) {
    SOON.until(&format!("nothing is left {when}"), async || {
        let left: Vec<String> =
            Host::look().beyond(before).into_iter().filter(|line| !allowed(line)).collect();
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
}

/// The number of cycles. `cargo xtask soak lab-cycles` sets twenty.
fn cycles() -> u32 {
    env::var("ISP_SOAK_CYCLES").map_or(2, |text| text.parse().unwrap())
}

#[tokio::test]
async fn up_and_down_again_and_again_leaves_nothing_behind() {
    if !is_apart("up_and_down_again_and_again_leaves_nothing_behind") {
        return;
    }
    let before = Host::look();
    for cycle in 1..=cycles() {
        let started = Instant::now();
        let lab = Lab::builder().name("cycle").up().await.unwrap();
        let up = started.elapsed();
        let running = Host::look().beyond(&before);
        for kind in ["process ", "mnt namespace ", "control group ", "directory of lab "] {
            assert!(running.iter().any(|line| line.starts_with(kind)), "no {kind}in {running:#?}");
        }
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
    if !is_apart("a_killed_init_takes_everything_with_it_and_the_next_start_cleans_up") {
        return;
    }
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
        let target = format!("10.90.0.11:{port}");
        let answered = |answer: &Answer| matches!(answer, Answer::Seen(_));
        let what = format!("{} is answered", lab.name());
        let answer = answers::until(lab, &what, &Place::Client, (Protocol::Http, &target), answered).await;
        let Answer::Seen(seen) = answer else { panic!("{answer:?}") };
        assert_eq!(seen.pod, lab.name());
        let other = lab.ask(&Place::Client, Protocol::Http, &format!("10.90.0.11:{silent}")).await.unwrap();
        assert_eq!(other.peer(), None);
    }

    two.down().unwrap();
    let pods: Api<Pod> = Api::namespaced(one.client(), "default");
    assert_eq!(pods.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let answer = one.ask(&Place::Client, Protocol::Http, "10.90.0.11:30080").await.unwrap();
    assert!(answer.peer().is_some(), "{answer:?}");
}
