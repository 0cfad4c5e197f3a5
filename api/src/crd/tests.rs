use super::*;

/// Calls `check` with the path of every property of both schemas.
fn for_each_property(mut check: impl FnMut(&str, &JSONSchemaProps)) {
    fn walk(path: &str, schema: &JSONSchemaProps, check: &mut impl FnMut(&str, &JSONSchemaProps)) {
        for (name, property) in schema.properties.iter().flatten() {
            let path = format!("{path}.{name}");
            check(&path, property);
            walk(&path, property, check);
        }
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
            walk(&format!("{path}[]"), items, check);
        }
    }
    for mut crd in all() {
        let kind = crd.spec.names.kind.clone();
        schemas(&mut crd).for_each(|schema| walk(&kind, schema, &mut check));
    }
}

#[test]
fn every_field_is_explained() {
    for_each_property(|path, property| {
        let own = !path.contains(".metadata");
        assert!(!own || property.description.as_ref().is_some_and(|text| text.len() > 10), "{path}");
    });
}

#[test]
fn a_field_is_explained_by_its_own_text_and_not_by_its_type() {
    let mut found = 0;
    for_each_property(|path, property| {
        if path == "IngressSourcePreserve.spec.nodePools[].mode" {
            found += 1;
            assert_eq!(
                property.description.as_deref(),
                Some("How the agents of this pool work: as `spec.mode` says. Mode `Beside` has no pools.")
            );
        }
    });
    assert_eq!(found, 1);
}

#[test]
fn no_trace_of_rust_is_left() {
    for_each_property(|path, property| {
        assert_eq!(property.nullable, None, "{path}");
        assert!(
            matches!(property.format.as_deref(), None | Some("int32" | "int64" | "date-time")),
            "{path}: {:?}",
            property.format
        );
        let text = property.description.as_deref().unwrap_or_default();
        assert!(!text.replace("\n\n", "").contains('\n'), "{path} has a hard line break");
    });
}

#[test]
fn every_list_says_how_it_is_merged() {
    for_each_property(|path, property| {
        let list = property.type_.as_deref() == Some("array");
        assert!(!list || property.x_kubernetes_list_type.is_some(), "{path}");
    });
}
