//! The tables of an example node, as text. `UPDATE_EXAMPLES=1` writes the files anew.

mod common;

use std::{fs, path::PathBuf};

use isp_dataplane::{nft::Family, text::render};

#[test]
fn the_tables_of_the_example_are_as_written_down() {
    for family in Family::ALL {
        let plane = common::plane(family, &common::node(), &common::examples());
        let text = render(&plane.table(), &plane.elements());
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/golden")
            .join(format!("{}.nft", family.keyword()));
        if std::env::var_os("UPDATE_EXAMPLES").is_some() {
            fs::write(&file, &text).unwrap();
        }
        let written = fs::read_to_string(&file).unwrap_or_default();
        assert!(text == written, "{} differs: UPDATE_EXAMPLES=1 writes it anew\n{text}", file.display());
    }
}
