use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::super::archive::sha256;
use super::*;

/// An archive with these files.
fn archive(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, path, content.as_slice()).unwrap();
    }
    tar.into_inner().unwrap()
}

fn blob(media_type: &str, content: &[u8]) -> ((String, Vec<u8>), Value) {
    let digest = sha256(content);
    let descriptor =
        json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": content.len()});
    ((format!("blobs/sha256/{digest}"), content.to_vec()), descriptor)
}

#[test]
fn images_are_found_with_their_platforms_and_sizes() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&[7; 5000]).unwrap();
    let (layer, layer_descriptor) = blob("layer", &gzip.finish().unwrap());
    let (config, config_descriptor) = blob("config", b"{}");
    let manifest = json!({"config": config_descriptor, "layers": [layer_descriptor]});
    let (manifest, mut described) = blob("manifest", manifest.to_string().as_bytes());
    described["platform"] = json!({"os": "linux", "architecture": "arm64"});
    let several = json!({"manifests": [described]});
    let (several, mut joined) = blob(INDEX, several.to_string().as_bytes());
    let name = |name: &str| json!({"org.opencontainers.image.ref.name": name});
    described["annotations"] = name("r.example:5000/isp/one:1");
    joined["annotations"] = name("r.example:5000/isp/two:1");
    let index = json!({"manifests": [described, joined]}).to_string().into_bytes();
    let compressed = layer.1.len() as u64 + 2;
    let files = [layer, config, manifest, several, ("index.json".to_owned(), index)];

    let images = read(archive(&files).as_slice()).unwrap();
    assert_eq!(images.iter().map(Image::program).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(images[1].digest, joined["digest"]);
    for image in &images {
        let variant = Variant { platform: "linux/arm64".to_owned(), compressed, unpacked: 5000 };
        assert_eq!(image.variants, [variant]);
    }
    let error = read(archive(&files[1..]).as_slice()).unwrap_err();
    assert!(matches!(error, ImagesError::Missing(_)), "{error}");
}
