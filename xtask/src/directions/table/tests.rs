use super::{TableError, update};
use crate::workspace::Package;

const BEFORE: &str = "\
# Architecture

| module | knows |
|---|---|
| `view` | what a node sees |

| crate | content | may depend on |
|---|---|---|
| `isp-api` (`api/`) | types | everything |
| `isp-plan` (`plan/`) | a pure function | |
| `isp-demo` (`demo/`) | a scenario | `isp-lab` |
| `xtask` | commands | none |

| `isp-api` | another table | stays |
";

fn packages(names: &[&str]) -> Vec<Package> {
    let package = |name: &&str| Package { name: (*name).to_owned(), dependencies: vec![], targets: vec![] };
    names.iter().map(package).collect()
}

#[test]
fn the_last_column_says_what_the_rules_allow_and_nothing_else_changes() {
    let updated = update(BEFORE, &packages(&["isp-api", "isp-plan", "isp-demo", "xtask"])).unwrap();
    let expected = BEFORE
        .replace("| types | everything |", "| types | none |")
        .replace(
            "| a pure function | |",
            "| a pure function | `isp-api`; never `netlink-sys`, `nix`, `rtnetlink`, `rustix`, `socket2`, `tokio` |",
        )
        // The rule allows isp-lab, too, which is not in this workspace.
        .replace("| a scenario | `isp-lab` |", "| a scenario | `isp-api` |")
        .replace("| commands | none |", "| commands | any |");
    assert_eq!(updated, expected);
    assert_eq!(update(&updated, &packages(&["isp-api", "isp-plan", "isp-demo", "xtask"])).unwrap(), updated);
}

#[test]
fn a_crate_without_a_row_and_a_row_without_a_crate_are_named() {
    let all = ["isp-api", "isp-plan", "isp-demo", "xtask", "isp-lab"];
    assert!(matches!(update(BEFORE, &packages(&all)), Err(TableError::NoRow(name)) if name == "isp-lab"));
    assert!(matches!(update("", &packages(&["isp-api"])), Err(TableError::NoRow(name)) if name == "isp-api"));
    let gone = update(BEFORE, &packages(&["isp-api", "isp-plan", "xtask"]));
    assert!(matches!(gone, Err(TableError::ExtraRow(name)) if name == "isp-demo"));
}
