//! The ways in which the proxy's own connections are recognized. A relay that were not exempt would
//! get its own connections back.

use std::fs;
use std::path::PathBuf;

use crate::relay::{self, Relay};
use crate::world::{APPLICATION, HTTP, OUTSIDE, POD, World, seen};

const PORT: u16 = 15001;

/// Every connection passes the relay once.
fn expect_relayed_once(world: &World) {
    for (pod, servers) in POD.into_iter().zip(OUTSIDE) {
        for server in servers {
            let found = world.ask_from_pod(APPLICATION, "http", (server, HTTP));
            assert_eq!(found, seen(pod, (server, HTTP), Some("relay")));
        }
    }
}

fn relayed(options: &str, before: &[&str], mark: Option<u32>) {
    let mut world = World::new();
    world.redirect(&format!("--outbound-port={PORT} {options}")).unwrap();
    relay::start(&mut world, before, PORT, &Relay { mark, ..Relay::default() });
    expect_relayed_once(&world);
}

#[test]
fn a_proxy_is_exempt_by_its_user() {
    relayed("--exempt-uids=1,1337", &["setpriv", "--reuid=1337", "--regid=99", "--clear-groups"], None);
}

#[test]
fn a_proxy_is_exempt_by_its_group() {
    relayed("--exempt-gids=1337", &["setpriv", "--reuid=99", "--regid=1337", "--clear-groups"], None);
}

#[test]
fn a_proxy_is_exempt_by_the_mark_of_its_sockets() {
    relayed("--exempt-marks=0x5", &[], Some(0x5));
    relayed("--exempt-marks=0x20/0xf0", &[], Some(0x123));
}

#[test]
fn a_proxy_needs_no_exemption_if_only_destinations_are_redirected_that_it_does_not_use() {
    let [[near4, far4], [near6, far6]] = OUTSIDE;
    let mut world = World::new();
    world.redirect(&format!("--outbound-port={PORT} --outbound-destinations={far4},{far6}")).unwrap();
    let upstreams = Some([near4, near6].map(|address| address.parse().unwrap()));
    relay::start(&mut world, &[], PORT, &Relay { upstreams, ..Relay::default() });
    for (pod, near, far) in [(POD[0], near4, far4), (POD[1], near6, far6)] {
        let found = world.ask_from_pod(APPLICATION, "http", (far, HTTP));
        assert_eq!(found, seen(pod, (near, HTTP), Some("relay")));
        let direct = world.ask_from_pod(APPLICATION, "http", (near, HTTP));
        assert_eq!(direct, seen(pod, (near, HTTP), None));
    }
}

/// A group of the test, and the hierarchy that it is in, as far as the kernel has it.
struct Group {
    place: PathBuf,
    /// The path relative to the root of the hierarchy.
    name: String,
}

impl Group {
    fn new(world: &World, kind: &[&str]) -> Option<Self> {
        let mount = world.file(kind[0]);
        fs::create_dir(&mount).unwrap();
        let mount = mount.to_str().unwrap();
        world.run("pod", &[&["mount", "-t"], kind, &["none", mount]].concat()).ok()?;
        let name = format!("isp-test-{}/proxy", std::process::id());
        let place = PathBuf::from(mount).join(&name);
        world.run("pod", &["mkdir", "-p", place.to_str().unwrap()]).unwrap();
        Some(Self { place, name })
    }

    /// The words that start a program in the group.
    fn inside(&self) -> [String; 3] {
        let script = format!("echo $$ > {}/cgroup.procs; exec \"$0\" \"$@\"", self.place.display());
        ["sh".to_owned(), "-c".to_owned(), script]
    }

    /// Control groups outlive the namespaces of the test.
    fn remove(&self, world: &World) {
        let end = format!("kill -9 $(cat {}/cgroup.procs)", self.place.display());
        world.run("pod", &["sh", "-c", &end]).unwrap();
        for place in [&*self.place, self.place.parent().unwrap()] {
            let place = place.to_str().unwrap();
            let removed = (0..600).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(50));
                world.run("pod", &["rmdir", place]).is_ok()
            });
            assert!(removed, "{place} is not empty");
        }
    }
}

#[test]
fn a_proxy_is_exempt_by_its_control_group_of_either_version_as_far_as_the_kernel_has_them() {
    let tried = [by_net_cls(), by_cgroup()];
    assert!(tried.contains(&true), "this kernel has neither net_cls nor control groups of version 2");
}

fn by_net_cls() -> bool {
    let world = World::new();
    let Some(group) = Group::new(&world, &["cgroup", "-o", "net_cls"]) else { return false };
    let set = format!("echo 0x100001 > {}/net_cls.classid", group.place.display());
    world.run("pod", &["sh", "-c", &set]).unwrap();
    expect_exempt(world, &group, "--exempt-net-cls=0x100001");
    true
}

fn by_cgroup() -> bool {
    let world = World::new();
    let Some(group) = Group::new(&world, &["cgroup2"]) else { return false };
    expect_exempt(world, &group, &format!("--exempt-cgroups={}", group.name));
    true
}

/// The proxy in this group is exempt. The group is removed, whatever happens.
fn expect_exempt(mut world: World, group: &Group, exempt: &str) {
    let failure = world.redirect(&format!("--outbound-port={PORT} {exempt}")).err();
    let inside = group.inside();
    relay::start(&mut world, &inside.each_ref().map(String::as_str), PORT, &Relay::default());
    let relayed = std::panic::catch_unwind(|| expect_relayed_once(&world));
    group.remove(&world);
    assert_eq!(failure, None);
    relayed.unwrap();
}
