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

/// Writes an archive of one image.
fn write_one(archive: &Path, rootfs: Rootfs) -> Result<(), Error> {
    let settings = settings();
    write(
        archive,
        &[Contents { name: NAME, architecture: "amd64", rootfs, settings: &settings, compressed: false }],
    )
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
    write_one(&archive, rootfs(&big)).unwrap();

    let files = unpack(File::open(&archive).unwrap());
    assert_eq!(files.len(), 5);
    assert_eq!(parsed(&files["oci-layout"])["imageLayoutVersion"], "1.0.0");
    let described = &parsed(&files["index.json"])["manifests"][0];
    assert_eq!(described["annotations"]["io.containerd.image.name"], NAME);
    assert_eq!(described["annotations"]["org.opencontainers.image.ref.name"], NAME);
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
    write_one(&archive, rootfs(&big)).unwrap();
    let bytes = fs::read(&archive).unwrap();
    // Another path and time, but the same content.
    let moved = directory.path().join("moved");
    fs::write(&moved, "content").unwrap();
    write_one(&archive, rootfs(&moved)).unwrap();
    assert!(fs::read(&archive).unwrap() == bytes);
    fs::write(&moved, "changed").unwrap();
    write_one(&archive, rootfs(&moved)).unwrap();
    assert!(fs::read(&archive).unwrap() != bytes);
}

#[test]
fn an_archive_that_cannot_be_made_leaves_the_older_one_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("a.tar");
    fs::write(&archive, "an older one").unwrap();
    let error = write_one(&archive, rootfs(&directory.path().join("none"))).unwrap_err();
    assert!(error.to_string().contains("/none: No such file"), "{error}");
    assert_eq!(fs::read(&archive).unwrap(), b"an older one");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn several_images_share_an_archive_and_architectures_share_a_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = directory.path().join(name);
        fs::write(&path, name.repeat(100_000)).unwrap();
        path
    };
    let settings = settings();
    let image = |name, architecture, file: PathBuf| Contents {
        name,
        architecture,
        rootfs: rootfs(&file),
        settings: &settings,
        compressed: true,
    };
    let archive = directory.path().join("a.tar");
    let images = [
        image("one:1", "amd64", file("a")),
        image("one:1", "arm64", file("b")),
        image("two:1", "amd64", file("c")),
    ];
    write(&archive, &images).unwrap();

    let files = unpack(File::open(&archive).unwrap());
    let index = parsed(&files["index.json"]);
    let [one, two] = index["manifests"].as_array().unwrap().as_slice() else { panic!("{index}") };
    assert_eq!((&one["mediaType"], &two["mediaType"]), (&json!(INDEX), &json!(MANIFEST)));
    let platforms = parsed(blob(&files, one));
    let architectures: Vec<&Value> = platforms["manifests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["platform"]["architecture"])
        .collect();
    assert_eq!(architectures, ["amd64", "arm64"]);
    assert_eq!(two["annotations"]["org.opencontainers.image.ref.name"], "two:1");

    for (descriptor, content) in [(&platforms["manifests"][1], "b"), (two, "c")] {
        let manifest = parsed(blob(&files, descriptor));
        let config = parsed(blob(&files, &manifest["config"]));
        assert_eq!(config["architecture"], descriptor["platform"]["architecture"]);
        assert_eq!(manifest["layers"][0]["mediaType"], COMPRESSED_LAYER);
        let mut layer = Vec::new();
        let compressed = blob(&files, &manifest["layers"][0]);
        flate2::read::GzDecoder::new(compressed).read_to_end(&mut layer).unwrap();
        assert!(compressed.len() < layer.len() / 10, "{} of {}", compressed.len(), layer.len());
        assert_eq!(config["rootfs"]["diff_ids"][0], Digest::of(&layer).to_string());
        assert_eq!(unpack(layer.as_slice())["usr/bin/big"], content.repeat(100_000).as_bytes());
    }
}
