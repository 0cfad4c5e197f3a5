//! The program itself: what it leaves behind.

use std::fs;

use isp_dataplane::redirect::{Routing, Setting};

use crate::world::World;

const ARGUMENTS: &str = "--inbound-method=TPROXY --inbound-port=15006 --inbound-except-ports=15020,15021 \
    --outbound-port=15001 --outbound-except-destinations=10.96.0.10,fd00::a --exempt-uids=1337";

/// Everything that the program could have changed.
fn state(world: &World) -> String {
    let commands: [&[&str]; 5] = [
        &["nft", "list", "ruleset"],
        &["ip", "-4", "rule"],
        &["ip", "-6", "rule"],
        &["ip", "-4", "route", "show", "table", "all"],
        &["ip", "-6", "route", "show", "table", "all"],
    ];
    commands.map(|command| world.run("pod", command).unwrap()).concat()
}

#[test]
fn a_second_run_changes_nothing_and_the_log_is_what_nft_lists() {
    let world = World::new();
    let log = world.redirect(ARGUMENTS).unwrap();
    let after = state(&world);
    assert_eq!(world.redirect(ARGUMENTS).unwrap(), log);
    assert_eq!(state(&world), after);
    let listed = world.run("pod", &["nft", "list", "ruleset"]).unwrap();
    let rules: Vec<&str> = log.lines().filter(|line| !line.starts_with('#')).collect();
    // nft lists the elements of a set in one line.
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&rules.join("\n")), words(&listed));
}

#[test]
fn a_namespace_without_ipv6_gets_rules_for_ipv4_only() {
    let world = World::new();
    for interface in ["all", "default"] {
        world.sysctl(&format!("net.ipv6.conf.{interface}.disable_ipv6=1"));
    }
    let log = world.redirect(ARGUMENTS).unwrap();
    assert!(log.contains("table ip pod-redirect") && !log.contains("table ip6"), "{log}");
    assert!(log.contains("No interface of this pod has IPv6"), "{log}");
    assert!(!state(&world).contains("table ip6"));
}

#[test]
fn nothing_is_left_of_a_run_that_fails() {
    let world = World::new();
    let before = state(&world);
    let mut failures = Vec::new();

    failures.push((world.redirect("--outbound-port=15001").unwrap_err(), "--outbound-destinations=all"));
    assert_eq!(state(&world), before);

    let program = env!("CARGO_BIN_EXE_pod-redirect");
    let without_rights = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", program];
    let all: Vec<&str> = without_rights.into_iter().chain(ARGUMENTS.split_whitespace()).collect();
    failures.push((world.run("pod", &all).unwrap_err(), "CAP_NET_ADMIN"));
    assert_eq!(state(&world), before);

    let missing = format!("{ARGUMENTS} --exempt-cgroups=no/such/group");
    failures.push((world.redirect(&missing).unwrap_err(), "--exempt-cgroups=no/such/group"));
    assert_eq!(state(&world), before);

    // The routing of IPv4 succeeds here, that of IPv6 fails.
    world.sysctl("net.ipv6.conf.lo.disable_ipv6=1");
    let before = state(&world);
    failures
        .push((world.redirect(ARGUMENTS).unwrap_err(), "IPv6 is disabled on the loopback interface only"));
    assert_eq!(state(&world), before);
    world.sysctl("net.ipv6.conf.lo.disable_ipv6=0");

    // Another process owns the table, so the transaction fails after the routing.
    let before = state(&world);
    let mut owner = world.command("pod", &["nft", "-i"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut input = owner.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"add table ip pod-redirect { flags owner; }\n").unwrap();
    let is_owned = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        world.run("pod", &["nft", "list", "ruleset"]).unwrap().contains("owner")
    });
    assert!(is_owned, "nft does not own the table");
    failures.push((world.redirect(ARGUMENTS).unwrap_err(), "another process owns table ip pod-redirect"));
    drop(input);
    owner.wait().unwrap();
    assert_eq!(state(&world), before);

    for (failure, expected) in failures {
        assert!(failure.starts_with("error: ") && failure.contains(expected), "{failure}");
    }
}

#[test]
fn the_help_has_every_option() {
    let world = World::new();
    let help = world.redirect("--help").unwrap();
    assert_eq!(help, fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/help.txt")).unwrap());
    let Routing { mark, table } = Routing::DEFAULT;
    for default in [mark.to_string(), table.to_string()] {
        assert!(help.contains(&format!("[default: {default}]")), "{default}");
    }
    for setting in Setting::ALL {
        assert!(help.contains(&format!("      {} <", setting.flag())), "{}", setting.flag());
    }
}
