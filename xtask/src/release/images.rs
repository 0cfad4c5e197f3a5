//! The images in the OCI archive that `isp-lab pack` wrote: their names, digests and sizes, for
//! the other files of the release.

use std::collections::BTreeMap;
use std::io::{self, Read};

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

#[cfg(test)]
mod tests;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// An image of the release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    /// The full name, with registry and tag.
    pub(super) reference: String,
    /// `sha256:` and digits. A registry that gets the image unchanged has it under this digest.
    pub(super) digest: String,
    pub(super) variants: Vec<Variant>,
}

/// An image for one platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variant {
    /// Such as `linux/amd64`.
    pub(super) platform: String,
    /// The bytes to pull.
    pub(super) compressed: u64,
    /// The bytes on a node's disk.
    pub(super) unpacked: u64,
}

impl Image {
    /// The name of the program: the last part of the image's name.
    pub(super) fn program(&self) -> &str {
        let name = self.reference.rsplit_once('/').map_or(self.reference.as_str(), |(_, name)| name);
        name.split(':').next().unwrap_or(name)
    }
}

/// Why the archive could not be read.
#[derive(Debug, Error)]
pub(crate) enum ImagesError {
    #[error("cannot read the archive of the images")]
    Archive(#[from] io::Error),
    #[error("the archive of the images has no {0}")]
    Missing(String),
    #[error("{path} in the archive of the images is not as OCI defines it")]
    Malformed { path: String, source: serde_json::Error },
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default)]
    platform: Option<Platform>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Platform {
    os: String,
    architecture: String,
}

/// The files of the archive, by path.
struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    fn read(archive: impl Read) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(archive).entries()? {
            let mut entry = entry?;
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            files.insert(entry.path()?.to_string_lossy().into_owned(), content);
        }
        Ok(Self(files))
    }

    fn get(&self, path: &str) -> Result<&[u8], ImagesError> {
        self.0.get(path).map(Vec::as_slice).ok_or_else(|| ImagesError::Missing(path.to_owned()))
    }

    fn parse<T: DeserializeOwned>(&self, path: &str) -> Result<T, ImagesError> {
        serde_json::from_slice(self.get(path)?)
            .map_err(|source| ImagesError::Malformed { path: path.to_owned(), source })
    }

    fn variant(&self, described: &Descriptor) -> Result<Variant, ImagesError> {
        let manifest: Manifest = self.parse(&blob(described))?;
        let mut unpacked = 0;
        for layer in &manifest.layers {
            unpacked += io::copy(&mut GzDecoder::new(self.get(&blob(layer))?), &mut io::sink())?;
        }
        let Some(Platform { os, architecture }) = &described.platform else {
            return Err(ImagesError::Missing(format!("platform of {}", described.digest)));
        };
        let compressed = manifest.config.size + manifest.layers.iter().map(|layer| layer.size).sum::<u64>();
        Ok(Variant { platform: format!("{os}/{architecture}"), compressed, unpacked })
    }
}

fn blob(described: &Descriptor) -> String {
    format!("blobs/{}", described.digest.replace(':', "/"))
}

/// The images of an archive.
pub(super) fn read(archive: impl Read) -> Result<Vec<Image>, ImagesError> {
    let files = Files::read(archive)?;
    let index: Index = files.parse("index.json")?;
    let images = index.manifests.iter().map(|described| {
        let variants = if described.media_type == INDEX {
            let several: Index = files.parse(&blob(described))?;
            several.manifests.iter().map(|one| files.variant(one)).collect::<Result<_, _>>()?
        } else {
            vec![files.variant(described)?]
        };
        let reference = described.annotations.get("org.opencontainers.image.ref.name");
        let reference =
            reference.ok_or_else(|| ImagesError::Missing(format!("name of {}", described.digest)))?;
        Ok(Image { reference: reference.clone(), digest: described.digest.clone(), variants })
    });
    images.collect()
}
