use super::*;
use crate::{
    model::NodePortAddresses,
    nft::{InterfacePattern, Statement},
};

fn node(local_pods: LocalPods, masquerade_all: bool) -> Node {
    Node {
        name: "n1".into(),
        zone: None,
        addresses: Vec::new(),
        local_pods,
        node_port_addresses: NodePortAddresses::Primary,
        masquerade_all,
    }
}

fn tables() -> Vec<Table> {
    let provision = Provision { counts: BTreeSet::from([1, 7]), timeouts: BTreeSet::from([60, 10800]) };
    let detections = [
        LocalPods::Unknown,
        LocalPods::Interface(InterfacePattern::Name("cni0".to_owned())),
        LocalPods::Interface(InterfacePattern::Prefix("veth".to_owned())),
    ];
    let mut tables = Vec::new();
    for family in Family::ALL {
        let settings = Settings { table: Name::constant("t"), family, ahead: 5, remembered_clients: 1 };
        for detection in &detections {
            for masquerade_all in [false, true] {
                tables.push(table(&settings, &node(detection.clone(), masquerade_all), &provision));
            }
        }
    }
    tables
}

#[test]
fn every_rule_refers_only_to_what_the_table_has() {
    for table in tables() {
        let names: BTreeSet<&Name> = table
            .sets
            .iter()
            .map(|set| &set.name)
            .chain(table.chains.iter().map(|chain| &chain.name))
            .collect();
        assert_eq!(names.len(), table.sets.len() + table.chains.len(), "names are unique");
        let statements =
            || table.chains.iter().flat_map(|chain| &chain.rules).flat_map(|rule| &rule.statements);
        let referred = |name: &Name| statements().any(|statement| statement.refers_to(name));
        for statement in statements() {
            let refers = matches!(
                statement,
                Statement::InSet { .. }
                    | Statement::Dnat(_)
                    | Statement::Update { .. }
                    | Statement::PriorityVerdict { .. }
            );
            assert!(!refers || names.iter().any(|name| statement.refers_to(name)), "{statement:?}");
        }
        for set in &table.sets {
            assert!(referred(&set.name), "no rule uses {}", set.name);
        }
        for chain in table.chains.iter().filter(|chain| chain.base.is_none()) {
            let by_count = chain.name.as_str().starts_with("choose-");
            assert!(by_count || referred(&chain.name), "no rule leads to {}", chain.name);
        }
    }
}

#[test]
fn affinity_rules_exist_only_with_a_timeout() {
    let settings =
        Settings { table: Name::constant("t"), family: Family::Ip6, ahead: 5, remembered_clients: 1 };
    let table = table(&settings, &node(LocalPods::Unknown, false), &Provision::default());
    let update = |statement: &Statement| matches!(statement, Statement::Update { .. });
    assert!(
        !table.chains.iter().flat_map(|chain| &chain.rules).flat_map(|rule| &rule.statements).any(update)
    );
}

#[test]
fn the_steps_that_make_a_table_make_it() {
    for table in tables() {
        let mut steps = table.creation();
        assert_eq!(steps.remove(0), crate::nft::Operation::AddTable);
        let empty = Table { sets: Vec::new(), chains: Vec::new(), ..table.clone() };
        let mut made = crate::ruleset::Ruleset::new(empty, []).unwrap();
        made.commit(&steps).unwrap();
        assert_eq!(*made.table(), table);
    }
}
