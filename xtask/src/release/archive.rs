//! Archives and digests of files. The same files give the same bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};
use tar::{Builder, Header};

/// A file of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) content: Vec<u8>,
    pub(super) executable: bool,
}

impl Entry {
    pub(super) fn file(content: impl Into<Vec<u8>>) -> Self {
        Self { content: content.into(), executable: false }
    }

    pub(super) fn program(content: impl Into<Vec<u8>>) -> Self {
        Self { content: content.into(), executable: true }
    }
}

/// Packs files, by path. All of them belong to root and have this time.
pub(super) fn tar_gz(entries: &BTreeMap<String, Entry>, seconds: u64) -> io::Result<Vec<u8>> {
    // gzip's own header has neither a time nor a name.
    let mut tar = Builder::new(GzBuilder::new().write(Vec::new(), Compression::best()));
    for (path, entry) in entries {
        let mut header = Header::new_gnu();
        header.set_size(entry.content.len() as u64);
        header.set_mode(if entry.executable { 0o755 } else { 0o644 });
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(seconds);
        tar.append_data(&mut header, path, entry.content.as_slice())?;
    }
    tar.into_inner()?.finish()
}

/// The SHA-256 digest of a file, in hexadecimal digits.
pub(super) fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The content of a file for `sha256sum --check`, from digests by path.
pub(super) fn checksums(digests: &BTreeMap<String, String>) -> String {
    digests.iter().fold(String::new(), |lines, (path, digest)| lines + digest + "  " + path + "\n")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::process::Command;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn an_archive_is_the_same_whenever_it_is_made_and_depends_on_nothing_but_the_files() {
        let entries = BTreeMap::from([
            ("isp/z".to_owned(), Entry::program("run")),
            ("isp/a".to_owned(), Entry::file("text")),
        ]);
        let packed = tar_gz(&entries, 1_700_000_000).unwrap();
        assert_eq!(packed, tar_gz(&entries, 1_700_000_000).unwrap());
        let mut archive = tar::Archive::new(GzDecoder::new(packed.as_slice()));
        let listed: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let mut entry = entry.unwrap();
                let mut content = String::new();
                entry.read_to_string(&mut content).unwrap();
                let header = entry.header();
                assert_eq!((header.uid().unwrap(), header.mtime().unwrap()), (0, 1_700_000_000));
                (entry.path().unwrap().display().to_string(), header.mode().unwrap(), content)
            })
            .collect();
        let expected = [("isp/a", 0o644, "text"), ("isp/z", 0o755, "run")];
        assert_eq!(listed, expected.map(|(path, mode, content)| (path.to_owned(), mode, content.to_owned())));
    }

    #[test]
    fn checksums_are_verified_by_the_usual_tool() {
        let directory = std::env::temp_dir().join(format!("xtask-checksums-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let files = [("a.txt", "one"), ("b c.txt", "two")];
        let digests = files.map(|(name, content)| (name.to_owned(), sha256(content.as_bytes())));
        for (name, content) in files {
            fs::write(directory.join(name), content).unwrap();
        }
        fs::write(directory.join("SUMS"), checksums(&BTreeMap::from(digests))).unwrap();
        let check = || {
            let mut tool = Command::new("sha256sum");
            tool.current_dir(&directory)
                .args(["--check", "--strict", "SUMS"])
                .output()
                .unwrap()
                .status
                .success()
        };
        assert!(check());
        fs::write(directory.join("a.txt"), "changed").unwrap();
        assert!(!check());
        fs::remove_dir_all(&directory).unwrap();
    }
}
