//! The two addresses of a release: where its images are pulled from, and where the project lives.
//! Both are parsed once, on the command line. The errors say how to write them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

#[cfg(test)]
mod tests;

/// The prefix of all image names, such as `registry.example.com/isp`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registry(String);

/// Why a text is not a registry.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum RegistryError {
    #[error("is empty; name a host and a path, such as registry.example.com/isp")]
    Empty,
    #[error("image names have no scheme; use {0}")]
    Scheme(String),
    #[error("ends with a slash; use {0}")]
    TrailingSlash(String),
    #[error("has a tag, but the version is the tag of every image; use {0}")]
    Tag(String),
    #[error("does not begin with a host; use docker.io/{0}, or a host with a dot or a port")]
    NoHost(String),
    #[error(
        "{part:?} cannot be part of an image name; use lower case letters, digits, and - . _ between them"
    )]
    Part { part: String },
}

impl Registry {
    /// The registry in the manifests of the repository. No image is pulled from it: images of that
    /// name are loaded on the nodes.
    pub(crate) const IN_MANIFESTS: &'static str = "localhost/ingress-source-preserve";

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Replaces the registry of the manifests in a text.
    pub(super) fn replace_in(&self, text: &str) -> String {
        text.replace(Self::IN_MANIFESTS, &self.0)
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self(Self::IN_MANIFESTS.to_owned())
    }
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Registry {
    type Err = RegistryError;

    fn from_str(text: &str) -> Result<Self, RegistryError> {
        if text.is_empty() {
            return Err(RegistryError::Empty);
        }
        if let Some((_, rest)) = text.split_once("://") {
            return Err(RegistryError::Scheme(rest.trim_end_matches('/').to_owned()));
        }
        if text.ends_with('/') {
            return Err(RegistryError::TrailingSlash(text.trim_end_matches('/').to_owned()));
        }
        let (host, path) = text.split_once('/').map_or((text, None), |(host, path)| (host, Some(path)));
        if host != "localhost" && !host.contains(['.', ':']) {
            return Err(RegistryError::NoHost(text.to_owned()));
        }
        if let Some((name, _)) = path.and_then(|path| path.rsplit_once([':', '@'])) {
            return Err(RegistryError::Tag(format!("{host}/{name}")));
        }
        let (name, port) = host.split_once(':').unwrap_or((host, "0"));
        let parts = [name].into_iter().chain(path.into_iter().flat_map(|path| path.split('/')));
        let mut wrong = parts.filter(|part| !is_part(part)).chain((!is_port(port)).then_some(port));
        match wrong.next() {
            Some(found) => Err(RegistryError::Part { part: found.to_owned() }),
            None => Ok(Self(text.to_owned())),
        }
    }
}

/// Whether a text can stand between the slashes of an image name.
fn is_part(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    text.starts_with(plain)
        && text.ends_with(plain)
        && text.chars().all(|letter| plain(letter) || "-._".contains(letter))
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

/// The URL of the repository on its host. Files of a release are below it, as on GitHub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home(String);

/// Why a text is not such a URL.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum HomeError {
    #[error("is not an https URL; use one such as https://git.example.com/team/project")]
    NotHttps,
    #[error("ends with a slash; use {0}")]
    TrailingSlash(String),
}

impl Default for Home {
    fn default() -> Self {
        Self(Self::IN_CARGO.to_owned())
    }
}

impl Home {
    /// The repository that Cargo.toml names.
    pub(crate) const IN_CARGO: &'static str = env!("CARGO_PKG_REPOSITORY");

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL of a file of a release.
    pub(super) fn download(&self, version: &str, file: &str) -> String {
        format!("{}/releases/download/v{version}/{file}", self.0)
    }

    /// The URL of a file of the sources of a release.
    pub(super) fn source(&self, version: &str, path: &str) -> String {
        format!("{}/blob/v{version}/{path}", self.0)
    }
}

impl FromStr for Home {
    type Err = HomeError;

    fn from_str(text: &str) -> Result<Self, HomeError> {
        let host = text.strip_prefix("https://").filter(|rest| !rest.contains(char::is_whitespace));
        if host.is_none_or(|host| host.trim_matches('/').is_empty()) {
            return Err(HomeError::NotHttps);
        }
        if text.ends_with('/') {
            return Err(HomeError::TrailingSlash(text.trim_end_matches('/').to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}
