#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

fn range(text: &str) -> Range {
    text.parse().unwrap()
}

#[test]
fn what_is_no_range_is_told_apart() {
    for text in ["", "10.0.0.0/33", "10.0.0/8", "fd00::/129", "10.0.0.0/-1", "10.0.0.0/", "web"]
        .into_iter()
        .chain(["010.0.0.0/8", "10.0.0.0/8/8", "10.0.0.0/256", "fd00::1%eth0/64", " 10.0.0.0/8", "/8"])
    {
        assert_eq!(text.parse::<Range>(), Err(NotARange), "{text}");
    }
}

#[test]
fn a_range_holds_what_lies_in_it_and_nothing_of_the_other_family() {
    for (outer, inner, holds) in [
        ("10.0.0.0/8", "10.90.0.0/24", true),
        ("10.90.0.7/24", "10.90.0.255", true),
        ("10.90.0.0/24", "10.90.1.0", false),
        ("10.90.0.0/24", "10.90.0.0/16", false),
        ("0.0.0.0/0", "198.51.100.10", true),
        ("0.0.0.0/0", "fd00::1", false),
        ("fd00::/8", "fd00:90::/64", true),
        ("::/0", "10.0.0.1", false),
        ("10.90.0.11", "10.90.0.11/32", true),
        ("::ffff:10.0.0.0/104", "10.0.0.1", false),
    ] {
        assert_eq!(range(outer).holds(range(inner)), holds, "{outer} {inner}");
    }
}

#[test]
fn sizes() {
    assert!(range("0.0.0.0/0").is_everything() && range("::/0").is_everything());
    assert!(range("10.90.0.0/24").is_small() && range("fd00::/64").is_small());
    assert!(!range("10.90.0.0/23").is_small() && !range("fd00::/63").is_small());
}

#[test]
fn host_bits_do_not_make_another_range() {
    assert_eq!(range("10.90.0.7/24"), range("10.90.0.0/24"));
    assert_ne!(range("0.0.0.0/0"), range("::/0"));
}

#[test]
fn a_range_is_private_only_as_a_whole() {
    for text in ["10.0.0.0/8", "172.31.255.255", "100.64.0.0/10", "fd00::/8", "fe80::1"] {
        assert!(range(text).is_private(), "{text}");
    }
    for text in ["10.0.0.0/7", "172.32.0.0/16", "100.128.0.0/10", "198.51.100.0/24", "2001:db8::/32", "::/0"]
    {
        assert!(!range(text).is_private(), "{text}");
    }
}
