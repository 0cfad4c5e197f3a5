use std::collections::BTreeMap;
use std::fs::{self, File};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::*;
use crate::image::unpacked::{blob, unpack};

/// The image configuration from one stage of the Containerfile.
#[derive(Debug, PartialEq)]
struct Said {
    user: String,
    entrypoint: Value,
    directory: String,
    labels: BTreeMap<String, String>,
    /// The program's path in the image.
    program: String,
}

/// The final stages, by name.
fn containerfile() -> BTreeMap<String, Said> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../Containerfile")).unwrap();
    let stages = text.split("\nFROM ").skip(1).filter_map(|stage| {
        let (head, body) = stage.split_once('\n')?;
        let name = head.split_once(" AS ").unwrap().1.to_owned();
        let lines = |word: &'static str| {
            body.lines().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '))
        };
        let last = |word| lines(word).next_back().unwrap_or_default().to_owned();
        let label = |line: &str| {
            let (key, value) = line.split_once('=').unwrap();
            (key.to_owned(), value.trim_matches('"').to_owned())
        };
        Some((
            name,
            Said {
                user: last("USER"),
                entrypoint: serde_json::from_str(&last("ENTRYPOINT")).ok()?,
                directory: last("WORKDIR"),
                labels: lines("LABEL").map(label).collect(),
                program: last("COPY").rsplit_once(' ').unwrap().1.to_owned(),
            },
        ))
    });
    stages.collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn an_archive_is_what_the_containerfile_says() {
    let said = containerfile();
    assert_eq!(
        said.keys().collect::<Vec<_>>(),
        ["operator", "pod-redirect", "probe", "proxy-agent", "webhook"]
    );
    let directory = tempfile::tempdir().unwrap();
    for (name, said) in said {
        // Any program will do; this one exists.
        let program = directory.path().join(&name);
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let archive = directory.path().join("images.tar");
        write(&[program], "registry.example/isp", &archive).unwrap();

        let files = unpack(File::open(&archive).unwrap());
        let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        let described = &index["manifests"][0];
        let reference = format!("registry.example/isp/{name}:{}", env!("CARGO_PKG_VERSION"));
        assert_eq!(described["annotations"]["io.containerd.image.name"], reference);
        let manifest: Value = serde_json::from_slice(blob(&files, described)).unwrap();
        let image: Value = serde_json::from_slice(blob(&files, &manifest["config"])).unwrap();
        let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
        assert_eq!((&image["architecture"], &image["os"]), (&json!(machine), &json!("linux")));
        assert_eq!(described["platform"], json!({"architecture": machine, "os": "linux"}));

        let layer = unpack(GzDecoder::new(blob(&files, &manifest["layers"][0])));
        let config = &image["config"];
        let packed = Said {
            user: text(&config["User"]),
            entrypoint: config["Entrypoint"].clone(),
            directory: text(&config["WorkingDir"]),
            labels: serde_json::from_value(config["Labels"].clone()).unwrap(),
            program: text(&config["Entrypoint"][0]),
        };
        assert_eq!(packed, said);
        assert!(layer.contains_key(said.program.trim_start_matches('/')), "{:?}", layer.keys());
        assert_eq!(said.labels["org.opencontainers.image.version"], env!("CARGO_PKG_VERSION"));
    }
}

#[test]
fn a_program_that_is_not_released_is_named() {
    let error = write(&["/bin/true".into()], REGISTRY, Path::new("/nowhere")).unwrap_err().to_string();
    assert!(error.contains("/bin/true") && error.contains("proxy-agent"), "{error}");
}
