//! Reads archives back, for tests.

use std::collections::BTreeMap;
use std::io::Read;

use serde_json::Value;

use super::digest::Digest;

/// The files of a tar archive, by name.
pub(crate) fn unpack(archive: impl Read) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(archive).entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        files.insert(entry.path().unwrap().display().to_string(), bytes);
    }
    files
}

/// The blob of a descriptor. Checks its digest and size.
pub(crate) fn blob<'a>(files: &'a BTreeMap<String, Vec<u8>>, descriptor: &Value) -> &'a [u8] {
    let digest = descriptor["digest"].as_str().unwrap();
    let bytes = &files[&format!("blobs/{}", digest.replace(':', "/"))];
    assert_eq!(Digest::of(bytes).to_string(), digest);
    assert_eq!(descriptor["size"], bytes.len());
    bytes
}
