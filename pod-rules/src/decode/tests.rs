use std::fs;
use std::path::Path;

use super::*;

/// A dump of the real kernel, decoded.
pub(crate) fn dump(name: &str) -> PodRules {
    PodRules::decode(&document(name)).unwrap()
}

fn document(name: &str) -> Dump {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dumps").join(format!("{name}.json"));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn every_rule_of_the_dumps_is_known() {
    for origin in ["iptables-nft", "iptables-legacy", "nftables", "ours"] {
        for mode in ["redirect", "tproxy"] {
            let text = dump(&format!("{origin}-{mode}")).ruleset.to_string();
            assert!(text.contains("redirect to :15001") && !text.contains("unknown"), "{text}");
        }
    }
    assert_eq!(dump("none").ruleset, Ruleset::default());
}

#[test]
fn a_dump_that_is_cut_off_is_an_error_and_no_panic() {
    for name in ["iptables-nft-tproxy", "iptables-legacy-tproxy", "ours-tproxy"] {
        let whole = document(name);
        for length in (0..whole.packet_rules.0.len()).step_by(37) {
            let mut cut = whole.clone();
            cut.packet_rules.0.truncate(length);
            let _ = PodRules::decode(&cut);
        }
        for table in 0..whole.legacy_tables.len() {
            for length in (1..whole.legacy_tables[table].entries.0.len()).step_by(37) {
                let mut cut = whole.clone();
                cut.legacy_tables[table].entries.0.truncate(length);
                let _ = PodRules::decode(&cut);
            }
        }
    }
}
