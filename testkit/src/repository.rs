//! Files of this repository.

use std::path::{Path, PathBuf};

/// A path in the repository, from its root.
pub fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(path)
}

/// The same as text, for command lines.
pub fn path(path: &str) -> String {
    file(path).to_str().unwrap().to_owned()
}
