//! The rules and the routing of a pod's redirect.

use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use isp_dataplane::netlink::FoundRouting;
use isp_dataplane::nft::Family;
use isp_dataplane::redirect::{LocalDelivery, Rules, Settings, TABLE};
use isp_dataplane::text::render;
use isp_kernel::{Kernel, PolicyRouting};

use crate::inside::inside;
use crate::loading::{found, sorted};
use crate::nft::{feed, nft};
use crate::raw;

/// Settings with every kind of rule.
const ALL: &[&str] = &[
    "--inbound-method=TPROXY --inbound-port=15006 --inbound-ports=8080 --inbound-except-ports=9000-9100 \
     --outbound-port=15001 --outbound-destinations=10.0.0.0/8,fd00::/8 --outbound-ports=443 \
     --outbound-except-destinations=10.96.0.10,fd00:96::a --outbound-except-ports=25 --exempt-uids=0,1337 \
     --exempt-gids=1337 --exempt-marks=0x1,0x20/0xf0,0x2000000/0xfe000000 --exempt-net-cls=0x100001",
    "--inbound-method=REDIRECT --inbound-port=15006 --mark=0x5/0xf --table=77",
    "--inbound-method=REDIRECT --inbound-port=15006 --mark=0x5 --table=77",
    "--inbound-method=TPROXY --inbound-port=15006 --mark=0x80000000/0xf0000000",
];

fn settings(arguments: &str) -> Settings {
    Settings::parse(arguments.split_whitespace()).unwrap()
}

fn rules(arguments: &str, family: Family, cgroup: u64) -> Rules {
    settings(arguments).rules(family, |_| Ok::<_, Infallible>(cgroup)).unwrap()
}

#[test]
fn the_rules_of_a_redirect_are_byte_for_byte_what_nft_makes_of_their_text() {
    inside("redirecting::the_rules_of_a_redirect_are_byte_for_byte_what_nft_makes_of_their_text", || {
        for (arguments, family) in ALL.iter().flat_map(|all| Family::ALL.map(|family| (all, family))) {
            let Rules { table, elements } = rules(arguments, family, 0);
            let text = render(&table, &elements);
            feed(&text).unwrap();
            let theirs = raw::report(&table);
            nft(&["delete", "table", family.keyword(), TABLE.as_str()]);
            let mut kernel = Kernel::open().unwrap();
            kernel.load(&[(&table, &elements)]).unwrap();
            assert_eq!(raw::report(&table), theirs, "{text}");
            assert_eq!(found(&mut kernel, &table), sorted(elements));
            assert_eq!(nft(&["list", "ruleset"]), text);
            kernel.unload(&[&table]).unwrap();
        }
    });
}

#[test]
fn a_control_group_is_found_by_nft_and_by_its_number_alike() {
    inside("redirecting::a_control_group_is_found_by_nft_and_by_its_number_alike", || {
        // The mount is gone with the namespaces of the test, the group is not.
        let mounted = Command::new("mount").args(["-t", "cgroup2", "none", "/sys/fs/cgroup"]).status();
        assert!(mounted.unwrap().success(), "this kernel has no control groups of version 2");
        let group = format!("isp-test-{}", std::process::id());
        let path = format!("/sys/fs/cgroup/{group}");
        fs::create_dir_all(format!("{path}/proxy")).unwrap();
        let id = fs::metadata(format!("{path}/proxy")).unwrap().ino();
        let arguments = format!("--outbound-port=15001 --exempt-cgroups={group}/proxy");
        let result = std::panic::catch_unwind(|| {
            let Rules { table, elements } = rules(&arguments, Family::Ip, id);
            let text = render(&table, &elements);
            feed(&text).unwrap();
            let theirs = raw::report(&table);
            let mut kernel = Kernel::open().unwrap();
            kernel.load(&[(&table, &elements)]).unwrap();
            assert_eq!(raw::report(&table), theirs, "{text}");
            assert_eq!(found(&mut kernel, &table), sorted(elements));
            assert_eq!(nft(&["list", "ruleset"]), text);
        });
        for each in [format!("{path}/proxy"), path] {
            fs::remove_dir(each).unwrap();
        }
        result.unwrap();
    });
}

/// What `ip` lists, without the rules that every namespace has.
fn listed(family: Family, what: &[&str]) -> String {
    let option = if family == Family::Ip { "-4" } else { "-6" };
    let output = Command::new("ip").arg(option).args(what).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn routing_is_added_once_found_and_removed() {
    inside("redirecting::routing_is_added_once_found_and_removed", || {
        let mut routing = PolicyRouting::open().unwrap();
        for family in Family::ALL {
            let wanted = settings(ALL[0]).local_delivery(family).unwrap();
            let before = listed(family, &["rule"]);
            assert_eq!(routing.find(&wanted).unwrap(), FoundRouting { rule: false, route: false });
            for _ in 0..2 {
                routing.add(&wanted).unwrap();
                assert_eq!(routing.find(&wanted).unwrap(), FoundRouting { rule: true, route: true });
            }
            let rules = listed(family, &["rule"]);
            let ours = "1000:\tfrom all fwmark 0x1000000/0x1000000 lookup 15006";
            assert_eq!(rules.matches(ours).count(), 1, "{rules}");
            let routes = listed(family, &["route", "show", "table", "15006"]);
            assert!(routes.starts_with("local default dev lo"), "{routes}");
            let mut other = wanted;
            other.routing.table = 15_007;
            assert_eq!(routing.find(&other).unwrap(), FoundRouting { rule: false, route: false });
            for _ in 0..2 {
                routing.remove(&wanted).unwrap();
                assert_eq!(routing.find(&wanted).unwrap(), FoundRouting { rule: false, route: false });
            }
            assert_eq!(listed(family, &["rule"]), before);
        }
    });
}

#[test]
fn the_commands_that_routing_prints_do_the_same() {
    inside("redirecting::the_commands_that_routing_prints_do_the_same", || {
        let mut routing = PolicyRouting::open().unwrap();
        for family in Family::ALL {
            let wanted: LocalDelivery = settings(ALL[0]).local_delivery(family).unwrap();
            for command in wanted.to_string().lines() {
                let words: Vec<&str> = command.split_whitespace().collect();
                assert!(Command::new(words[0]).args(&words[1..]).status().unwrap().success(), "{command}");
            }
            assert_eq!(routing.find(&wanted).unwrap(), FoundRouting { rule: true, route: true });
            routing.remove(&wanted).unwrap();
            assert_eq!(routing.find(&wanted).unwrap(), FoundRouting { rule: false, route: false });
        }
    });
}

#[test]
fn a_loopback_interface_that_is_down_is_named() {
    inside("redirecting::a_loopback_interface_that_is_down_is_named", || {
        assert!(Command::new("ip").args(["link", "set", "lo", "down"]).status().unwrap().success());
        let wanted = settings(ALL[0]).local_delivery(Family::Ip6).unwrap();
        let error = PolicyRouting::open().unwrap().add(&wanted).unwrap_err().to_string();
        assert!(
            error.contains("add the local route") && error.contains("loopback interface is down"),
            "{error}"
        );
    });
}
