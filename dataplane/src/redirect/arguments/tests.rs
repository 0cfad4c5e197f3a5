use proptest::prelude::*;
use proptest::{collection::vec, option, sample::select};

use super::*;

fn ranges(least: usize) -> impl Strategy<Value = Vec<PortRange>> {
    let range =
        (1..=20_000_u16, 0..500_u16).prop_map(|(first, more)| PortRange { first, last: first + more });
    vec(range, least..4)
}

fn ports() -> impl Strategy<Value = Ports> {
    prop_oneof![Just(Ports::All), ranges(1).prop_map(Ports::Some)]
}

fn networks() -> impl Strategy<Value = Vec<IpNet>> {
    vec(select(vec!["10.0.0.0/8", "192.0.2.7/32", "fd00::/8", "2001:db8::1/128", "10.1.2.3/16"]), 0..4)
        .prop_map(|texts| texts.iter().map(|text| text.parse().unwrap()).collect())
}

/// Ports of proxies are above all other ports here, so they are in no list.
fn proxy_port() -> impl Strategy<Value = u16> {
    30_000..=u16::MAX
}

prop_compose! {
    fn inbound()(
        method in select(Method::ALL.to_vec()),
        port in proxy_port(),
        ports in ports(),
        except_ports in ranges(0),
    ) -> Inbound {
        Inbound { method, port, ports, except_ports }
    }
}

prop_compose! {
    fn outbound()(
        port in proxy_port(),
        destinations in networks(),
        ports in ports(),
        except_destinations in networks(),
        except_ports in ranges(0),
    ) -> Outbound {
        Outbound { port, destinations, ports, except_destinations, except_ports }
    }
}

prop_compose! {
    fn exempt()(
        uids in vec(0..u32::MAX, 0..3),
        gids in vec(0..u32::MAX, 0..3),
        marks in vec((1..0x1000_u32, 0..0x1000_u32), 0..3),
        net_cls in vec(1..=u32::MAX, 0..3),
        cgroups in vec("[a-z][a-z0-9.:_-]{0,8}(/[a-z0-9._-]{3,9}){0,3}", 0..3),
    ) -> Exempt {
        let marks = marks.into_iter().map(|(value, mask)| Mark { value, mask: mask | value }).collect();
        Exempt { uids, gids, marks, net_cls, cgroups }
    }
}

prop_compose! {
    fn settings()(
        inbound in option::of(inbound()),
        outbound in option::of(outbound()),
        exempt in exempt(),
        table in 1000..u32::MAX,
    ) -> Settings {
        Settings { inbound, outbound, exempt, routing: Routing { table, ..Routing::DEFAULT } }
    }
}

proptest! {
    #[test]
    fn settings_come_back_from_their_arguments(settings in settings()) {
        let parsed = Settings::parse(settings.arguments());
        match settings.check() {
            Ok(()) => prop_assert_eq!(parsed, Ok(settings)),
            Err(problem) => prop_assert_eq!(parsed, Err(problem.into())),
        }
    }

    #[test]
    fn any_arguments_are_read_without_a_panic(arguments in vec("(--[a-z-]{0,25})?(=.{0,10})?", 0..5)) {
        let _ = Settings::parse(arguments);
    }
}

#[test]
fn arguments_are_readable() {
    let text = "--inbound-method=TPROXY --inbound-port=15006 --inbound-ports=8080,9000-9100 \
        --inbound-except-ports=9050 --outbound-port=15001 --outbound-destinations=10.0.0.0/8,fd00::/8 \
        --outbound-ports=443 --outbound-except-destinations=10.96.0.10/32 --outbound-except-ports=25 \
        --exempt-uids=1337 --exempt-gids=1337 --exempt-marks=0x1/0xff --exempt-net-cls=0x100001 \
        --exempt-cgroups=proxies/nginx --mark=0x1000000/0x1000000 --table=15006";
    let arguments: Vec<&str> = text.split(' ').collect();
    assert_eq!(Settings::parse(arguments.clone()).unwrap().arguments(), arguments);
}

#[test]
fn values_may_be_arguments_of_their_own_and_single_addresses_are_networks() {
    let arguments = ["--outbound-port", "15001", "--outbound-destinations", "192.0.2.1, 2001:db8::1"];
    let outbound = Settings::parse(arguments).unwrap().outbound.unwrap();
    assert_eq!(list(&outbound.destinations), "192.0.2.1/32,2001:db8::1/128");
}

#[test]
fn arguments_that_are_no_settings_are_refused_with_option_value_and_way_out() {
    let refused = |arguments: &str| Settings::parse(arguments.split(' ')).unwrap_err().to_string();
    for (arguments, expected) in [
        ("--inbound", "there is no option --inbound: use --inbound-method,--inbound-port,"),
        ("8080", "there is no option 8080: use"),
        ("--inbound-port", "--inbound-port has no value: write --inbound-port=VALUE"),
        ("--inbound-port --mark=1", "--inbound-port has no value"),
        ("--mark=1 --mark=2", "--mark=2: the option is already set to 1: give it once"),
        ("--inbound-port=http", "--inbound-port=http: \"http\" is not valid: write a port from 1 to 65535"),
        ("--inbound-port=65536", "write a port from 1 to 65535"),
        ("--inbound-port=15006 --inbound-method=tproxy", "\"tproxy\" is not valid: write TPROXY or REDIRECT"),
        ("--inbound-port=15006", "--inbound-port=15006: this needs --inbound-method too"),
        ("--inbound-ports=80", "--inbound-ports=80: this needs --inbound-port too"),
        ("--outbound-ports=80", "--outbound-ports=80: this needs --outbound-port too"),
        (
            "--inbound-method=TPROXY --inbound-port=1 --inbound-ports=80,90-x",
            "--inbound-ports=80,90-x: \"90-x\" is not valid: write a port such as 8080, or a range",
        ),
        (
            "--outbound-port=15001 --outbound-destinations=example.org",
            "\"example.org\" is not valid: write a network such as 10.0.0.0/8",
        ),
        ("--exempt-uids=nginx", "\"nginx\" is not valid: write a numeric id"),
        ("--exempt-marks=0x1/x", "\"0x1/x\" is not valid: write a mark such as 0x1"),
        ("--exempt-net-cls=10:1", "\"10:1\" is not valid: write a class id such as 0x100001"),
        ("--table=main", "\"main\" is not valid: write the number of a routing table"),
        ("--inbound-method=TPROXY --inbound-port=0", "--inbound-port=0: no program can listen on port 0"),
    ] {
        let found = refused(arguments);
        assert!(found.contains(expected), "{arguments}: {found}");
    }
}
