use super::*;

fn object(spec: &str) -> IngressSourcePreserve {
    let base = "ingressNodes: {selector: {matchLabels: {role: edge}}}\nservices: [{namespace: a, name: b}]\n";
    IngressSourcePreserve::new("istio", serde_yaml::from_str(&format!("{base}{spec}")).unwrap())
}

#[test]
fn the_label_is_the_objects_name_unless_it_is_said() {
    let table = [
        ("", "sourcepreserve.io/preserve=istio"),
        ("serviceLabel: {}", "sourcepreserve.io/preserve=istio"),
        ("serviceLabel: {value: mesh}", "sourcepreserve.io/preserve=mesh"),
        ("serviceLabel: {key: example.com/skip}", "example.com/skip=istio"),
        ("serviceLabel: {key: example.com/skip, value: mesh}", "example.com/skip=mesh"),
    ];
    for (spec, expected) in table {
        assert_eq!(object(spec).service_label().to_string(), expected, "{spec}");
    }
}

#[test]
fn without_pools_there_is_one_of_all_nodes() {
    let object = object("");
    let [pool] = object.spec.pools()[..] else { panic!("one pool") };
    assert_eq!(pool.name, "default");
    assert_eq!(pool.contains(&[("any".to_owned(), "label".to_owned())].into()), Ok(true));
}

#[test]
fn in_mode_beside_there_are_no_pools() {
    assert_eq!(object("mode: Beside").spec.pools(), []);
    assert_eq!(object("mode: Beside\nnodePools: [{name: z, selector: {}}]").spec.pools(), []);
}

#[test]
fn listed_pools_keep_their_order() {
    let object = object("nodePools: [{name: z, selector: {}}, {name: a, selector: {}, mode: Filter}]");
    let names: Vec<_> = object.spec.pools().iter().map(|pool| pool.name).collect();
    assert_eq!(names, ["z", "a"]);
}

#[test]
fn an_entry_means_one_service_or_those_of_its_namespace_that_it_selects() {
    let exposed = [("expose".to_owned(), "yes".to_owned())].into();
    let table = [
        ("{namespace: shop, name: web}", "shop", "web", true),
        ("{namespace: shop, name: web}", "shop", "db", false),
        ("{namespace: shop, name: web}", "other", "web", false),
        ("{namespace: shop, selector: {matchLabels: {expose: 'yes'}}}", "shop", "db", true),
        ("{namespace: shop, selector: {matchLabels: {expose: 'no'}}}", "shop", "db", false),
        ("{namespace: shop, selector: {matchLabels: {expose: 'yes'}}}", "other", "db", false),
        ("{namespace: shop}", "shop", "db", false),
    ];
    for (entry, namespace, name, expected) in table {
        let target: ServiceTarget = serde_yaml::from_str(entry).unwrap();
        assert_eq!(target.matches(namespace, name, &exposed), Ok(expected), "{entry} and {namespace}/{name}");
    }
}
