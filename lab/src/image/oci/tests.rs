use std::{io::Read as _, path::PathBuf};

use super::super::rootfs::Entry;
use super::super::unpacked::{blob, unpack};
use super::*;

const NAME: &str = "registry.example:5000/lab/thing:v1";

fn rootfs(big: &Path) -> Rootfs {
    let long = format!("/{}/{}", "directory".repeat(12), "file".repeat(20));
    let entries = [
        ("/usr/bin/big".to_owned(), Entry::file(big.to_owned(), 0o755)),
        ("/etc/motd".to_owned(), Entry::content("hello\n", 0o644)),
        (long, Entry::link("target/".repeat(30))),
        ("/tmp".to_owned(), Entry::directory(0o1777)),
    ];
    Rootfs::assemble(entries.map(|(path, entry)| (PathBuf::from(path), entry))).unwrap()
}

fn settings() -> Settings {
    Settings {
        entrypoint: vec!["/usr/bin/big".into(), "--yes".into()],
        user: "1337:1338".into(),
        labels: BTreeMap::new(),
    }
}

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn an_archive_leads_from_the_index_to_every_file_of_the_layer() {
    let directory = tempfile::tempdir().unwrap();
    let big = directory.path().join("big");
    // Not a multiple of the block size, and larger than every buffer.
    let content = vec![7; 3_000_001];
    fs::write(&big, &content).unwrap();
    let archive = directory.path().join("not/yet/there.tar");
    let digest = write(&archive, NAME, &rootfs(&big), &settings()).unwrap();

    let files = unpack(File::open(&archive).unwrap());
    assert_eq!(files.len(), 5);
    assert_eq!(parsed(&files["oci-layout"])["imageLayoutVersion"], "1.0.0");
    let described = &parsed(&files["index.json"])["manifests"][0];
    assert_eq!(described["digest"], digest.to_string());
    assert_eq!(described["annotations"]["io.containerd.image.name"], NAME);
    assert_eq!(described["annotations"]["org.opencontainers.image.ref.name"], "v1");
    let manifest = parsed(blob(&files, described));
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 1);

    let config = parsed(blob(&files, &manifest["config"]));
    assert_eq!(config["config"]["Entrypoint"], json!(["/usr/bin/big", "--yes"]));
    assert_eq!(config["config"]["Env"], json!([PATH]));
    assert_eq!(
        (&config["config"]["User"], &config["config"]["WorkingDir"]),
        (&json!("1337:1338"), &json!("/"))
    );
    assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);

    let layer = blob(&files, &manifest["layers"][0]);
    let mut listed = Vec::new();
    for entry in tar::Archive::new(layer).entries().unwrap() {
        let mut entry = entry.unwrap();
        let header = entry.header().clone();
        assert_eq!((header.mtime().unwrap(), header.uid().unwrap(), header.gid().unwrap()), (0, 0, 0));
        let path = entry.path().unwrap().display().to_string();
        match path.as_str() {
            "usr/bin/big" => {
                let mut read = Vec::new();
                entry.read_to_end(&mut read).unwrap();
                assert!(read == content);
                assert_eq!(header.mode().unwrap(), 0o755);
            }
            "tmp/" => assert_eq!(header.mode().unwrap(), 0o1777),
            _ => {}
        }
        if header.entry_type().is_symlink() {
            assert_eq!(entry.link_name().unwrap().unwrap(), Path::new(&"target/".repeat(30)));
        }
        listed.push(path);
    }
    assert_eq!(listed[1].len(), 12 * 9 + 1 + 20 * 4);
    listed.remove(1);
    let first = format!("{}/", "directory".repeat(12));
    assert_eq!(listed, [first.as_str(), "etc/", "etc/motd", "tmp/", "usr/", "usr/bin/", "usr/bin/big"]);
}

#[test]
fn the_same_input_gives_the_same_bytes_and_replaces_the_archive() {
    let directory = tempfile::tempdir().unwrap();
    let big = directory.path().join("big");
    fs::write(&big, "content").unwrap();
    let archive = directory.path().join("a.tar");
    fs::write(&archive, "an older one").unwrap();
    let digest = write(&archive, NAME, &rootfs(&big), &settings()).unwrap();
    let bytes = fs::read(&archive).unwrap();
    // Another path and time, but the same content.
    let moved = directory.path().join("moved");
    fs::write(&moved, "content").unwrap();
    assert_eq!(write(&archive, NAME, &rootfs(&moved), &settings()).unwrap(), digest);
    assert!(fs::read(&archive).unwrap() == bytes);
    fs::write(&moved, "changed").unwrap();
    assert_ne!(write(&archive, NAME, &rootfs(&moved), &settings()).unwrap(), digest);
}

#[test]
fn an_archive_that_cannot_be_made_leaves_the_older_one_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("a.tar");
    fs::write(&archive, "an older one").unwrap();
    let error = write(&archive, NAME, &rootfs(&directory.path().join("none")), &settings()).unwrap_err();
    assert!(error.to_string().contains("/none: No such file"), "{error}");
    assert_eq!(fs::read(&archive).unwrap(), b"an older one");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_port_is_no_tag() {
    assert_eq!(tag(NAME), "v1");
    assert_eq!(tag("localhost:5000/thing"), "latest");
    assert_eq!(tag("thing"), "latest");
}
