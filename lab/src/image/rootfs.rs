//! The file layout of an image: every path occurs once, all parent directories exist, and nothing
//! is placed beneath a symbolic link.
//!
//! Pure: it never reads the host. `Image` collects entries in any order; `layer` and `cpio` write
//! the result.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use super::error::Error;

/// The kernel's limit.
const MOST_LINKS: usize = 40;

/// An entry. Everything in an image is owned by root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) mode: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// The content of a file on the host, which must not be a link.
    File(PathBuf),
    Content(Vec<u8>),
    Link(PathBuf),
    Directory,
}

impl Kind {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::Content(_) => "content",
            Self::Link(_) => "link",
            Self::Directory => "directory",
        }
    }
}

impl Entry {
    fn new(kind: Kind, mode: u32) -> Self {
        Self { kind, mode }
    }

    pub(super) fn file(host: PathBuf, mode: u32) -> Self {
        Self::new(Kind::File(host), mode)
    }

    pub(super) fn content(content: impl Into<Vec<u8>>, mode: u32) -> Self {
        Self::new(Kind::Content(content.into()), mode)
    }

    pub(super) fn link(target: impl Into<PathBuf>) -> Self {
        Self::new(Kind::Link(target.into()), 0o777)
    }

    pub(super) fn directory(mode: u32) -> Self {
        Self::new(Kind::Directory, mode)
    }

    fn describe(&self) -> String {
        match &self.kind {
            Kind::File(host) => format!("the file {} with mode {:o}", host.display(), self.mode),
            Kind::Content(content) => format!("a file of {} bytes with mode {:o}", content.len(), self.mode),
            Kind::Link(target) => format!("a link to {}", target.display()),
            Kind::Directory => format!("a directory with mode {:o}", self.mode),
        }
    }
}

/// Entries by absolute path, sorted: parents come first.
#[derive(Debug)]
pub(super) struct Rootfs(BTreeMap<PathBuf, Entry>);

impl Rootfs {
    pub(super) fn assemble(entries: impl IntoIterator<Item = (PathBuf, Entry)>) -> Result<Self, Error> {
        let entries: Vec<_> = entries
            .into_iter()
            .map(|(path, entry)| Ok((checked(path)?, entry)))
            .collect::<Result<_, Error>>()?;
        let links = Links::of(&entries)?;
        let mut placed = BTreeMap::new();
        for (path, entry) in entries {
            place(&mut placed, links.beneath_none(&path)?, entry)?;
        }
        let above: Vec<_> =
            placed.keys().flat_map(|path| path.ancestors().skip(1)).map(PathBuf::from).collect();
        for directory in above {
            placed.entry(directory).or_insert_with(|| Entry::directory(0o755));
        }
        placed.remove(Path::new("/"));
        let rootfs = Self(placed);
        rootfs.check_parents()?;
        Ok(rootfs)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, &Entry)> {
        self.0.iter().map(|(path, entry)| (path.as_path(), entry))
    }

    fn check_parents(&self) -> Result<(), Error> {
        for (path, entry) in &self.0 {
            let parent = path.parent().and_then(|parent| Some((parent, self.0.get(parent)?)));
            if let Some((parent, known)) = parent.filter(|(_, known)| known.kind != Kind::Directory) {
                return Err(Error::Conflict {
                    path: parent.to_owned(),
                    one: known.describe(),
                    other: format!("the directory of {}, {}", path.display(), entry.describe()),
                });
            }
        }
        Ok(())
    }
}

fn place(placed: &mut BTreeMap<PathBuf, Entry>, path: PathBuf, entry: Entry) -> Result<(), Error> {
    match placed.get(&path) {
        Some(known) if *known != entry => {
            Err(Error::Conflict { path, one: known.describe(), other: entry.describe() })
        }
        Some(_) => Ok(()),
        None => {
            placed.insert(path, entry);
            Ok(())
        }
    }
}

fn checked(path: PathBuf) -> Result<PathBuf, Error> {
    let normal = path.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
    if path.is_absolute() && normal && path != Path::new("/") {
        // Collecting the components drops doubled and trailing slashes.
        Ok(path.components().collect())
    } else {
        Err(Error::Destination { path })
    }
}

/// The symbolic links of an image, by their link-free paths.
struct Links(BTreeMap<PathBuf, PathBuf>);

impl Links {
    fn of(entries: &[(PathBuf, Entry)]) -> Result<Self, Error> {
        let given = Self(
            entries
                .iter()
                .filter_map(|(path, entry)| match &entry.kind {
                    Kind::Link(target) => Some((path.clone(), target.clone())),
                    _ => None,
                })
                .collect(),
        );
        let placed = given.0.iter().map(|(path, target)| Ok((given.beneath_none(path)?, target.clone())));
        Ok(Self(placed.collect::<Result<_, Error>>()?))
    }

    /// Resolves links in the parent directories of a path, so that unpacking never writes through a
    /// link.
    fn beneath_none(&self, path: &Path) -> Result<PathBuf, Error> {
        let mut current = path.to_owned();
        for _ in 0..MOST_LINKS {
            let mut above: Vec<_> = current.ancestors().skip(1).collect();
            above.reverse();
            let Some((link, target)) = above.into_iter().find_map(|link| Some((link, self.0.get(link)?)))
            else {
                return Ok(current);
            };
            let rest = current.strip_prefix(link).unwrap_or(Path::new(""));
            current = joined(link.parent().unwrap_or(Path::new("/")), &target.join(rest));
        }
        Err(Error::LinkLoop { path: path.to_owned() })
    }
}

/// `path` relative to `directory`, with `..` resolved. Correct only if no directory on the path is
/// a link.
pub(super) fn joined(directory: &Path, path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in directory.join(path).components() {
        match part {
            Component::ParentDir => {
                result.pop();
            }
            Component::CurDir => {}
            other => result.push(other),
        }
    }
    result
}

#[cfg(test)]
mod tests;
