use std::convert::Infallible;
use std::{fs, path::PathBuf};

use super::*;
use crate::text::render;

fn rules(arguments: &str, family: Family) -> Rules {
    let settings = Settings::parse(arguments.split_whitespace()).unwrap();
    settings.rules(family, |_| Ok::<_, Infallible>(7)).unwrap()
}

fn text(arguments: &str, family: Family) -> String {
    let Rules { table, elements } = rules(arguments, family);
    render(&table, &elements)
}

/// The rules of the example of each method, as text. `UPDATE_EXAMPLES=1` writes the files anew.
#[test]
fn the_rules_of_the_examples_are_as_written_down() {
    for (name, arguments) in [
        (
            "tproxy",
            "--inbound-method=TPROXY --inbound-port=15006 --inbound-except-ports=15020-15021 \
             --outbound-port=15001 --outbound-except-destinations=10.96.0.10,fd00:96::a \
             --outbound-except-ports=25,465 --exempt-uids=1337",
        ),
        (
            "redirect",
            "--inbound-method=REDIRECT --inbound-port=15006 --inbound-ports=8080,9000-9100 \
             --outbound-port=15001 --outbound-destinations=10.0.0.0/8,fd00::/8 --outbound-ports=443 \
             --exempt-uids=101 --exempt-gids=101 --exempt-marks=0x1,0x20/0xf0 --exempt-net-cls=0x100001 \
             --exempt-cgroups=proxies/nginx",
        ),
    ] {
        for family in Family::ALL {
            let text = text(arguments, family);
            let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
                .join("tests/golden/redirect")
                .join(format!("{name}-{}.nft", family.keyword()));
            if std::env::var_os("UPDATE_EXAMPLES").is_some() {
                fs::write(&file, &text).unwrap();
            }
            let written = fs::read_to_string(&file).unwrap_or_default();
            assert!(text == written, "{} differs: UPDATE_EXAMPLES=1 writes it anew\n{text}", file.display());
        }
    }
}

#[test]
fn a_family_without_a_destination_has_no_outbound_rules() {
    let arguments = "--outbound-port=15001 --outbound-destinations=10.0.0.0/8";
    assert_eq!(rules(arguments, Family::Ip).table.chains.len(), 1);
    assert!(rules(arguments, Family::Ip6).table.chains.is_empty());
    let excepted = "--outbound-port=15001 --outbound-except-destinations=10.0.0.0/8 --exempt-uids=1";
    assert!(rules(excepted, Family::Ip6).table.sets.is_empty());
}

#[test]
fn networks_and_ports_that_overlap_become_one_element() {
    let arguments = "--outbound-port=15001 --outbound-destinations=10.1.0.0/16,10.0.0.0/8,10.1.2.3,11.0.0.0/8 \
        --outbound-ports=80-90,85,91";
    let elements = text(arguments, Family::Ip);
    assert!(elements.contains("elements = { 10.0.0.0/7 }"), "{elements}");
    assert!(elements.contains("elements = { 80-91 }"), "{elements}");
}

#[test]
fn nobody_is_exempt_by_a_control_group_that_cannot_be_found() {
    let arguments = "--outbound-port=15001 --exempt-cgroups=a/b";
    let settings = Settings::parse(arguments.split_whitespace()).unwrap();
    assert_eq!(settings.rules(Family::Ip, |path| Err(path.to_owned())), Err("a/b".to_owned()));
}
