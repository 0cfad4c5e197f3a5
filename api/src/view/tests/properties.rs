//! Properties of views for every node and every set of objects. The alphabets are small, so that
//! labels, selectors and ages collide.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

fn node_labels() -> impl Strategy<Value = BTreeMap<String, String>> {
    let value = || select(vec!["a", "b", "c"]);
    prop::collection::btree_map(
        select(vec!["role", "zone"]).prop_map(str::to_owned),
        value().prop_map(str::to_owned),
        0..3,
    )
}

fn ingress_selector() -> impl Strategy<Value = String> {
    let key = || select(vec!["role", "zone"]);
    let value = || select(vec!["a", "b", "c"]);
    prop_oneof![
        (key(), value()).prop_map(|(key, value)| format!("matchLabels: {{{key}: {value}}}")),
        // `Gt` and an empty `In` are invalid.
        (key(), select(vec!["In", "NotIn", "Exists", "DoesNotExist", "Gt"]), vec(value(), 0..3)).prop_map(
            |(key, operator, values)| {
                format!("matchExpressions: [{{key: {key}, operator: {operator}, values: {values:?}}}]")
            }
        ),
    ]
}

fn spec() -> impl Strategy<Value = String> {
    let label =
        select(vec!["{}", "{value: x}", "{key: example.com/skip}", "{key: example.com/skip, value: x}"]);
    (ingress_selector(), select(vec!["ClusterOnly", "Hidden"]), label).prop_map(
        |(selector, elsewhere, label)| {
            format!(
                "ingressNodes: {{selector: {{{selector}}}}}\nelsewhere: {elsewhere}\nserviceLabel: {label}"
            )
        },
    )
}

/// Up to five objects with different names, of ages 1 to 3, some of them being deleted.
fn objects() -> impl Strategy<Value = Vec<IngressSourcePreserve>> {
    vec((spec(), 1..4_i64, any::<bool>()), 0..6).prop_map(|drafts| {
        let objects = drafts.into_iter().enumerate().map(|(index, (spec, age, deleting))| {
            let mut object = object(&format!("o{index}"), age, &spec);
            if deleting {
                object.metadata.deletion_timestamp = object.metadata.creation_timestamp.clone();
            }
            object
        });
        objects.collect()
    })
}

/// An object that does not exist yet, and so is newer than all others.
fn newcomer() -> impl Strategy<Value = IngressSourcePreserve> {
    spec().prop_map(|spec| {
        let mut object = object("newcomer", 0, &spec);
        object.metadata.creation_timestamp = None;
        object
    })
}

/// Labels of a Service that an object may have marked.
fn service_labels() -> impl Strategy<Value = BTreeMap<String, String>> {
    let key = select(vec!["sourcepreserve.io/preserve", "example.com/skip", "app"]).prop_map(str::to_owned);
    let value = select(vec!["x", "o0", "o1", "o2", "o3", "o4", "newcomer"]).prop_map(str::to_owned);
    prop::collection::btree_map(key, value, 0..4)
}

proptest! {
    #[test]
    fn without_objects_every_node_sees_everything(node in node_labels(), service in service_labels()) {
        let view = view(on(&node), []);
        prop_assert!(view.narrowing.is_empty() && view.objects.is_empty());
        prop_assert_eq!(view.narrowing.of(&service), View::Full);
    }

    #[test]
    fn an_ingress_node_sees_its_object_in_full_whatever_the_others_say(node in node_labels(), objects in objects()) {
        let view = view(on(&node), &objects);
        for object in objects.iter().filter(|object| object.spec.ingress_nodes.contains(&node) == Ok(true)) {
            let own = view.objects.iter().find(|own| own.object == object.name_any()).unwrap();
            prop_assert_eq!(own.view, View::Full);
            // Views depend on the label only: Services with it are narrowed only if it belongs to
            // an older object.
            let marked = BTreeMap::from([(own.label.key.clone(), own.label.value.clone())]);
            let taken = matches!(own.doubt, Some(Doubt::LabelTaken { .. }));
            prop_assert!(taken || view.narrowing.of(&marked) == View::Full);
        }
    }

    #[test]
    fn elsewhere_no_object_is_seen_wider_than_it_allows(node in node_labels(), objects in objects()) {
        let view = view(on(&node), &objects);
        for object in objects.iter().filter(|object| object.spec.ingress_nodes.contains(&node) != Ok(true)) {
            let own = view.objects.iter().find(|own| own.object == object.name_any()).unwrap();
            prop_assert_eq!(own.view, View::from(object.spec.elsewhere));
            let marked = BTreeMap::from([(own.label.key.clone(), own.label.value.clone())]);
            prop_assert!(own.doubt.is_some() || view.narrowing.of(&marked) >= own.view);
        }
    }

    #[test]
    fn adding_an_object_never_widens_anothers_view(
        node in node_labels(), objects in objects(), newcomer in newcomer(), service in service_labels(),
    ) {
        let before = view(on(&node), &objects);
        let after = view(on(&node), objects.iter().chain([&newcomer]));
        prop_assert!(after.narrowing.of(&service) >= before.narrowing.of(&service));
        for own in &before.objects {
            prop_assert!(after.objects.contains(own));
        }
    }

    #[test]
    fn an_older_object_of_the_same_label_keeps_what_it_has(
        node in node_labels(), objects in objects(), newcomer in newcomer(),
    ) {
        let before = view(on(&node), &objects);
        let after = view(on(&node), objects.iter().chain([&newcomer]));
        for own in &before.objects {
            let marked = BTreeMap::from([(own.label.key.clone(), own.label.value.clone())]);
            prop_assert_eq!(after.narrowing.of(&marked), before.narrowing.of(&marked));
        }
    }

    #[test]
    fn the_order_in_which_objects_are_listed_does_not_matter(
        node in node_labels(), (objects, shuffled) in objects().prop_flat_map(|objects| {
            let shuffled = Just(objects.clone()).prop_shuffle();
            (Just(objects), shuffled)
        }),
    ) {
        prop_assert_eq!(view(on(&node), &objects), view(on(&node), &shuffled));
    }

    #[test]
    fn deleting_an_object_changes_nothing_until_it_is_gone(node in node_labels(), objects in objects()) {
        let mut alive = objects.clone();
        for object in &mut alive {
            object.metadata.deletion_timestamp = None;
        }
        prop_assert_eq!(view(on(&node), &objects), view(on(&node), &alive));
    }

    #[test]
    fn the_api_server_leaves_out_exactly_what_is_hidden(
        node in node_labels(), objects in objects(), service in service_labels(),
    ) {
        use kube::core::SelectorExt;
        let narrowing = view(on(&node), &objects).narrowing;
        prop_assert_eq!(narrowing.without_hidden().matches(&service), narrowing.of(&service) != View::Hidden);
    }
}
