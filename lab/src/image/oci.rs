//! The OCI archive around layers: layout, index, manifests and configurations, as `ctr images
//! import` and other tools read them. An archive holds one image or several.
//!
//! The lab's layers are not compressed. They are imported on the machine that built them, where
//! compression would only cost time. Release images are compressed.

use std::{
    collections::BTreeMap,
    fs::{self, File, Permissions},
    io::{self, BufWriter, Seek as _, SeekFrom, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use tar::{Builder, Header};

use super::{
    digest::{Digest, Hashing},
    error::{Error, at},
    layer,
    rootfs::Rootfs,
};

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const COMPRESSED_LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// The block size of tar. A header has one block.
const BLOCK: [u8; 512] = [0; 512];

const BUFFER: usize = 1024 * 1024;

/// The usual PATH of base images. Without it, programs cannot find others by name.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The image's configuration for containers.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    pub(super) entrypoint: Vec<String>,
    /// Empty means root.
    pub(super) user: String,
    /// The image's labels.
    pub(super) labels: BTreeMap<String, String>,
}

impl Settings {
    pub(super) fn to_json(&self) -> Value {
        let mut config =
            json!({ "Entrypoint": self.entrypoint, "Env": [PATH], "User": self.user, "WorkingDir": "/" });
        if !self.labels.is_empty() {
            config["Labels"] = json!(self.labels);
        }
        config
    }
}

/// An image for one architecture.
pub(super) struct Contents<'a> {
    pub(super) name: &'a str,
    /// In OCI terms.
    pub(super) architecture: &'a str,
    pub(super) rootfs: Rootfs,
    pub(super) settings: &'a Settings,
    pub(super) compressed: bool,
}

/// Writes the archive to a temporary file and renames it. Images that follow each other with the
/// same name become one image for several architectures.
pub(super) fn write(archive: &Path, images: &[Contents<'_>]) -> Result<(), Error> {
    let directory =
        archive.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(at("create", directory))?;
    let temporary = tempfile::NamedTempFile::new_in(directory).map_err(at("write to", directory))?;
    let mut out = BufWriter::with_capacity(BUFFER, temporary.as_file());

    let mut metadata = Metadata::default();
    let mut described = Vec::new();
    for of_one_name in images.chunk_by(|one, next| one.name == next.name) {
        let mut manifests = Vec::new();
        for image in of_one_name {
            let layer = write_layer(&mut out, image, archive)?;
            manifests.push(metadata.image(image, &layer));
        }
        described.push(metadata.join(of_one_name, &manifests));
    }
    metadata.write(&mut out, &described).map_err(at("write", archive))?;

    out.flush().map_err(at("write", archive))?;
    drop(out);
    temporary.as_file().set_permissions(Permissions::from_mode(0o644)).map_err(at("write", archive))?;
    temporary.persist(archive).map_err(|error| at("write", archive)(error.error))?;
    Ok(())
}

/// The digest and size of a blob, for descriptors.
struct Blob {
    digest: Digest,
    length: u64,
}

impl Blob {
    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.digest.hex())
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({ "mediaType": media_type, "digest": self.digest.to_string(), "size": self.length })
    }
}

/// A layer as it is stored, and the digest of its tar stream.
struct Layer {
    stored: Blob,
    unpacked: Digest,
}

/// Writes the layer first, and then its header, which needs the digest and the length. This way
/// every file is read only once.
fn write_layer(out: &mut BufWriter<&File>, image: &Contents<'_>, archive: &Path) -> Result<Layer, Error> {
    let failed = || at("write", archive);
    let start = out.stream_position().map_err(failed())?;
    out.write_all(&BLOCK).map_err(failed())?;
    let mut stored = Hashing::new(&mut *out);
    let unpacked = if image.compressed {
        // Without a file name and a time, the same input gives the same bytes.
        let gzip = GzBuilder::new().write(&mut stored, Compression::best());
        let mut hashing = Hashing::new(gzip);
        layer::write(&image.rootfs, &mut hashing, archive)?;
        let (gzip, digest, _) = hashing.finish();
        gzip.finish().map_err(failed())?;
        Some(digest)
    } else {
        layer::write(&image.rootfs, &mut stored, archive)?;
        None
    };
    let (_, digest, length) = stored.finish();
    let unpacked = unpacked.unwrap_or_else(|| digest.clone());
    let stored = Blob { digest, length };

    let go_back = |out: &mut BufWriter<&File>| -> io::Result<()> {
        // The next header begins at a whole block. Bytes that are skipped are zero.
        let end = start + BLOCK.len() as u64 + length.next_multiple_of(BLOCK.len() as u64);
        let header = header(&stored.path(), length)?;
        out.seek(SeekFrom::Start(start))?;
        out.write_all(header.as_bytes())?;
        out.seek(SeekFrom::Start(end))?;
        Ok(())
    };
    go_back(out).map_err(failed())?;
    Ok(Layer { stored, unpacked })
}

/// Configurations, manifests and indices. They follow all layers in the archive.
#[derive(Default)]
struct Metadata(Vec<(String, Vec<u8>)>);

impl Metadata {
    fn add(&mut self, content: &Value) -> Blob {
        let bytes = content.to_string().into_bytes();
        let blob = Blob { digest: Digest::of(&bytes), length: bytes.len() as u64 };
        self.0.push((blob.path(), bytes));
        blob
    }

    /// Adds the configuration and the manifest of an image. Returns the manifest.
    fn image(&mut self, image: &Contents<'_>, layer: &Layer) -> Blob {
        let config = self.add(&json!({
            "created": "1970-01-01T00:00:00Z",
            "architecture": image.architecture,
            "os": "linux",
            "config": image.settings.to_json(),
            "rootfs": { "type": "layers", "diff_ids": [layer.unpacked.to_string()] },
        }));
        let media_type = if image.compressed { COMPRESSED_LAYER } else { LAYER };
        self.add(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.descriptor(CONFIG),
            "layers": [layer.stored.descriptor(media_type)],
        }))
    }

    /// The descriptor of an image: of its manifest, or of an index if it has several.
    fn join(&mut self, images: &[Contents<'_>], manifests: &[Blob]) -> Value {
        let describe = |(manifest, image): (&Blob, &Contents<'_>)| {
            let mut descriptor = manifest.descriptor(MANIFEST);
            descriptor["platform"] = json!({ "architecture": image.architecture, "os": "linux" });
            descriptor
        };
        let mut described: Vec<Value> = manifests.iter().zip(images).map(describe).collect();
        let mut descriptor = match described.as_mut_slice() {
            [only] => only.take(),
            several => {
                let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": several });
                self.add(&index).descriptor(INDEX)
            }
        };
        let name = images.first().map_or("", |image| image.name);
        descriptor["annotations"] =
            json!({ "io.containerd.image.name": name, "org.opencontainers.image.ref.name": name });
        descriptor
    }

    fn write(&self, out: &mut BufWriter<&File>, descriptors: &[Value]) -> io::Result<()> {
        let mut tar = Builder::new(out);
        for (path, bytes) in &self.0 {
            append(&mut tar, path, bytes)?;
        }
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": descriptors });
        append(&mut tar, "index.json", index.to_string().as_bytes())?;
        append(&mut tar, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        tar.finish()
    }
}

fn append(tar: &mut Builder<&mut BufWriter<&File>>, path: &str, bytes: &[u8]) -> io::Result<()> {
    tar.append(&header(path, bytes.len() as u64)?, bytes)
}

fn header(path: &str, length: u64) -> io::Result<Header> {
    let mut header = Header::new_gnu();
    header.set_path(path)?;
    header.set_size(length);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    Ok(header)
}

#[cfg(test)]
mod tests;
