//! The two CustomResourceDefinitions to install.
//!
//! kube's derived schemas are valid but contain Rust artefacts: `nullable` on every `Option`,
//! formats that the API server does not know and warns about, and hard line breaks in descriptions.
//! This module removes them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use crate::{IngressSourceNode, IngressSourcePreserve};

#[cfg(test)]
mod tests;

/// Both definitions, in installation order.
pub fn all() -> [CustomResourceDefinition; 2] {
    let mut preserve = IngressSourcePreserve::crd();
    schemas(&mut preserve).for_each(limit_name);
    let mut crds = [preserve, IngressSourceNode::crd()];
    crds.iter_mut().flat_map(schemas).for_each(polish);
    crds
}

fn schemas(crd: &mut CustomResourceDefinition) -> impl Iterator<Item = &mut JSONSchemaProps> {
    crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut())
}

/// The object's name becomes a label value. The derived schema omits `metadata`, so the limit is
/// added here.
fn limit_name(schema: &mut JSONSchemaProps) {
    let name = JSONSchemaProps {
        type_: Some("string".to_owned()),
        max_length: Some(63),
        ..JSONSchemaProps::default()
    };
    let metadata = JSONSchemaProps {
        type_: Some("object".to_owned()),
        properties: Some([("name".to_owned(), name)].into()),
        ..JSONSchemaProps::default()
    };
    schema.properties.get_or_insert_default().insert("metadata".to_owned(), metadata);
}

fn polish(schema: &mut JSONSchemaProps) {
    // With `nullable`, null would be stored and hide the default. Without it, the API server
    // applies the default.
    schema.nullable = None;
    schema.format.take_if(|format| format.starts_with("uint"));
    schema.description = schema.description.take().map(|text| unwrap_lines(&text));

    schema.properties.iter_mut().flat_map(|properties| properties.values_mut()).for_each(polish);
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => polish(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(polish),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        polish(values);
    }
}

/// Joins the lines of each paragraph; `kubectl explain` wraps them to the terminal's width.
fn unwrap_lines(text: &str) -> String {
    text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n\n")
}
