//! The JSON Schemas of the output for scripts (`-o json`, `-o yaml`), from the types that are
//! printed. `cargo xtask generate` writes them to docs/schemas through the example `schemagen`.
//!
//! A command with such output has a line in the table below.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use crate::check::Check;
use crate::doctor::Examination;
use crate::explain_node::NodeReport;
use crate::plan::Forecast;
use crate::probe::Compared;
use crate::{rules, trace};

/// The name of each command with output for scripts, and the schema of that output. `status` prints
/// objects of the API, which have their schema in the CRDs.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        of::<Check>("check"),
        of::<Examination>("doctor"),
        of::<NodeReport>("explain-node"),
        of::<Forecast>("plan"),
        of::<Compared<'_>>("probe"),
        of::<rules::Report<'_>>("rules"),
        of::<trace::Report>("trace"),
    ]
}

fn of<T: JsonSchema>(command: &'static str) -> (&'static str, Schema) {
    // The output is only written, never read: fields that are always printed are required.
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    schema.insert("title".to_owned(), format!("kubectl isp {command} -o json").into());
    (command, schema)
}
