use super::*;
use crate::nft::{ChainKind, Data, Handle, Rule, Statement, Value, Verdict};

#[test]
fn priorities_are_relative_to_the_name_that_the_hook_has() {
    let text = |hook, number| priority(Base { kind: ChainKind::Nat, hook, priority: number });
    assert_eq!(text(Hook::Prerouting, -105), "dstnat - 5");
    assert_eq!(text(Hook::Output, -105), "-105");
    assert_eq!(text(Hook::Output, -150), "mangle");
    assert_eq!(text(Hook::Postrouting, 95), "srcnat - 5");
    assert_eq!(text(Hook::Input, 95), "95");
    assert_eq!(text(Hook::Forward, 0), "filter");
    assert_eq!(text(Hook::Forward, 3), "filter + 3");
}

#[test]
fn ranges_are_prefixes_where_they_can_be() {
    let text = |first: &str, last: &str| {
        let key = |address: &str| vec![Value::Port(80), Value::Address(address.parse().unwrap())];
        element(&Element {
            set: Name::constant("s"),
            key: key(first),
            last: Some(key(last)),
            data: Data::None,
        })
    };
    assert_eq!(text("10.0.0.0", "10.255.255.255"), "80 . 10.0.0.0/8");
    assert_eq!(text("10.0.0.1", "10.0.0.1"), "80 . 10.0.0.1");
    assert_eq!(text("10.0.0.1", "10.0.0.4"), "80 . 10.0.0.1-10.0.0.4");
    assert_eq!(value::prefix("10.0.0.1/32".parse().unwrap()), "10.0.0.1");
}

#[test]
fn handles_are_written_as_traffic_control_does() {
    assert_eq!(Handle(0).to_string(), "none");
    assert_eq!(Handle(u32::MAX).to_string(), "root");
    assert_eq!(Handle(0x0058_002b).to_string(), "58:2b");
}

#[test]
fn timeouts_are_written_in_the_largest_units() {
    let text = |timeout| {
        let lookup = crate::nft::Lookup { key: Vec::new(), set: Name::constant("m") };
        let update = Statement::Update { lookup, data: Vec::new(), timeout };
        rule(Family::Ip, &Rule { statements: vec![update, Statement::Verdict(Verdict::Drop)], comment: None })
    };
    assert!(text(10800).contains("timeout 3h "), "{}", text(10800));
    assert!(text(93_784).contains("timeout 1d2h3m4s "), "{}", text(93_784));
}
