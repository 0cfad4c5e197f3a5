use super::*;

fn names(list: &[&str]) -> Vec<NodeName> {
    list.iter().map(|name| NodeName::try_from((*name).to_owned()).unwrap()).collect()
}

#[test]
fn nodes_called_edge_are_ingress_nodes_unless_told() {
    let lab = Topology::new(names(&["edge-1", "work-1"]), None, Families::Ipv4).unwrap();
    assert_eq!(lab.nodes.iter().map(|node| node.ingress).collect::<Vec<_>>(), [true, false]);
    let told =
        Topology::new(names(&["edge-1", "work-1"]), Some(&names(&["work-1"])), Families::Ipv4).unwrap();
    assert_eq!(told.nodes.iter().map(|node| node.ingress).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn addresses_follow_the_order_of_the_names() {
    let lab = Topology::new(names(&["a", "b"]), None, Families::Dual).unwrap();
    let b = lab.node("b").unwrap();
    assert_eq!(b.address().to_string(), "10.90.0.12");
    assert_eq!(b.interface(lab.families), ["10.90.0.12/24", "fd00:90::c/64"]);
    assert_eq!(b.pods().cidrs(lab.families), ["10.244.2.0/24", "fd00:244:0:2::/64"]);
    assert_eq!(
        dns_addresses(lab.families).iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["10.96.0.10", "fd00:96::a"]
    );
    assert_eq!(SERVICE_RANGE.cidrs(Families::Ipv4), ["10.96.0.0/16"]);
    assert_eq!(SERVICE_RANGE.cidrs(Families::Ipv6), ["fd00:96::/112"]);
    assert_eq!(b.interface(Families::Ipv6), ["fd00:90::c/64"]);
}

#[test]
fn a_machine_beside_the_nodes_has_the_addresses_after_theirs() {
    let lab = Topology::new(names(&["a", "b"]), None, Families::Ipv4).unwrap();
    let machine = names(&["m"]).remove(0);
    let places: Vec<Node> = lab.beyond(&machine).unwrap().collect();
    assert_eq!((places[0].address(), places[0].cable()), ([10, 90, 0, 13].into(), "node3".to_owned()));
    assert_eq!(places[1].address(), Ipv4Addr::from([10, 90, 0, 14]));
    assert_eq!(places.len(), MAX_NODES - 2);
    let twice = lab.beyond(&lab.nodes[1].name).map(drop).unwrap_err();
    assert_eq!(twice, TopologyError::Twice(lab.nodes[1].name.clone()));
}

#[test]
fn bad_nodes_are_refused_with_the_reason() {
    let label = |name: &str| NodeName::try_from(name.to_owned()).unwrap_err();
    for bad in ["", "Edge", "1a", "a_b", "a-", &"a".repeat(41)] {
        assert_eq!(label(bad), TopologyError::NotALabel(bad.to_owned()));
    }
    assert_eq!(label("router"), TopologyError::Reserved("router".to_owned()));
    let new = |list: &[&str]| Topology::new(names(list), None, Families::Ipv4).unwrap_err();
    assert_eq!(new(&[]), TopologyError::Count(0));
    assert_eq!(new(&["a", "b", "a"]), TopologyError::Twice(names(&["a"]).remove(0)));
    let stranger = names(&["c"]);
    assert_eq!(
        Topology::new(names(&["a"]), Some(&stranger), Families::Ipv4).unwrap_err(),
        TopologyError::UnknownIngress(stranger[0].clone())
    );
}

#[test]
fn kube_proxy_runs_on_known_nodes_and_on_one_at_least() {
    let lab = || Topology::new(names(&["a", "b"]), None, Families::Ipv4).unwrap();
    let on = |name: &str, how| KubeProxyOn(name.to_owned(), how);
    let mixed = lab().with_kube_proxy(&[on("a", KubeProxy::None)]).unwrap();
    assert_eq!(mixed.kube_proxy_nodes(&[KubeProxy::DaemonSet]), ["b"]);
    assert_eq!(mixed.kube_proxy_nodes(&[KubeProxy::Process, KubeProxy::None]), ["a"]);
    let nobody = [on("a", KubeProxy::None), on("b", KubeProxy::None)];
    assert_eq!(lab().with_kube_proxy(&nobody), Err(TopologyError::NoKubeProxy));
    let stranger = [on("c", KubeProxy::Process)];
    assert_eq!(lab().with_kube_proxy(&stranger), Err(TopologyError::UnknownKubeProxy("c".to_owned())));
}
