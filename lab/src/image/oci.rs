//! The OCI archive around a layer: layout, index, manifest and configuration, as `ctr images
//! import` and other tools read them.
//!
//! The layer is not compressed. It is imported on the machine that built it, where compression
//! would only cost time.

use std::{
    collections::BTreeMap,
    env::consts::ARCH,
    fs::{self, File, Permissions},
    io::{self, BufWriter, Seek as _, SeekFrom, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use serde_json::{Value, json};
use tar::{Builder, Header};

use super::{
    digest::{Digest, Hashing},
    error::{Error, at},
    layer,
    rootfs::Rootfs,
};

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
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

/// Writes the archive to a temporary file and renames it. Returns the digest of the manifest.
pub(super) fn write(
    archive: &Path,
    name: &str,
    rootfs: &Rootfs,
    settings: &Settings,
) -> Result<Digest, Error> {
    let directory =
        archive.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(at("create", directory))?;
    let temporary = tempfile::NamedTempFile::new_in(directory).map_err(at("write to", directory))?;
    let mut out = BufWriter::with_capacity(BUFFER, temporary.as_file());

    let layer = write_layer(&mut out, rootfs, archive)?;
    let digest = write_metadata(&mut out, name, &layer, settings).map_err(at("write", archive))?;

    out.flush().map_err(at("write", archive))?;
    drop(out);
    temporary.as_file().set_permissions(Permissions::from_mode(0o644)).map_err(at("write", archive))?;
    temporary.persist(archive).map_err(|error| at("write", archive)(error.error))?;
    Ok(digest)
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

/// Writes the layer first, and then its header, which needs the digest and the length. This way
/// every file is read only once.
fn write_layer(out: &mut BufWriter<&File>, rootfs: &Rootfs, archive: &Path) -> Result<Blob, Error> {
    out.write_all(&BLOCK).map_err(at("write", archive))?;
    let mut hashing = Hashing::new(&mut *out);
    layer::write(rootfs, &mut hashing, archive)?;
    let (digest, length) = hashing.finish();
    let blob = Blob { digest, length };

    let go_back = |out: &mut BufWriter<&File>| -> io::Result<()> {
        let header = header(&blob.path(), blob.length)?;
        out.seek(SeekFrom::Start(0))?;
        out.write_all(header.as_bytes())?;
        // A tar stream has whole blocks, so it needs no padding inside another one.
        out.seek(SeekFrom::Start(BLOCK.len() as u64 + blob.length))?;
        Ok(())
    };
    go_back(out).map_err(at("write", archive))?;
    Ok(blob)
}

fn write_metadata(
    out: &mut BufWriter<&File>,
    name: &str,
    layer: &Blob,
    settings: &Settings,
) -> io::Result<Digest> {
    let mut tar = Builder::new(out);
    let config = append_blob(
        &mut tar,
        &json!({
            "created": "1970-01-01T00:00:00Z",
            "architecture": architecture(),
            "os": "linux",
            "config": settings.to_json(),
            "rootfs": { "type": "layers", "diff_ids": [layer.digest.to_string()] },
        }),
    )?;
    let manifest = append_blob(
        &mut tar,
        &json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.descriptor(CONFIG),
            "layers": [layer.descriptor(LAYER)],
        }),
    )?;
    let mut described = manifest.descriptor(MANIFEST);
    described["platform"] = json!({ "architecture": architecture(), "os": "linux" });
    described["annotations"] =
        json!({ "io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag(name) });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [described] });
    append(&mut tar, "index.json", index.to_string().as_bytes())?;
    append(&mut tar, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    tar.finish()?;
    Ok(manifest.digest)
}

fn append_blob(tar: &mut Builder<&mut BufWriter<&File>>, content: &Value) -> io::Result<Blob> {
    let bytes = content.to_string().into_bytes();
    let blob = Blob { digest: Digest::of(&bytes), length: bytes.len() as u64 };
    append(tar, &blob.path(), &bytes)?;
    Ok(blob)
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

/// This machine's architecture, in OCI terms.
fn architecture() -> &'static str {
    match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The tag of an image name. A colon before a slash belongs to the registry's port.
fn tag(name: &str) -> &str {
    name.rsplit_once(':').map(|(_, tag)| tag).filter(|tag| !tag.contains('/')).unwrap_or("latest")
}

#[cfg(test)]
mod tests;
