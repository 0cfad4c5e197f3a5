//! Images built from files on this machine: programs, the libraries they need, and a few other
//! files.
//!
//! Nothing is pulled and nothing runs during a build. An `Image` lists its contents, and
//! `write_archive` turns it into an OCI archive for `ctr images import`. The same input gives the
//! same bytes. `images` describes the lab's images with this module and keeps the archives.
//!
//! `rootfs` lays out the files, `closure` finds libraries, `layer` and `oci` write the archive.
//! `cpio` writes the same files as an initramfs.

mod architecture;
mod closure;
mod cpio;
pub(crate) mod digest;
mod error;
mod layer;
mod oci;
mod rootfs;
#[cfg(test)]
pub(crate) mod unpacked;

use std::{
    fmt::Write as _,
    fs, io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

pub(crate) use self::digest::Digest;
pub use self::error::Error;
use self::{
    error::at,
    rootfs::{Entry, Kind, Rootfs},
};

/// Increment it to rebuild existing archives after a change of the output for the same input.
const FORMAT: u32 = 2;

/// ldconfig rewrites it whenever a library is installed or replaced.
const LOADER_CACHE: &str = "/etc/ld.so.cache";

/// The contents of an image and its configuration.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    name: String,
    entries: Vec<(PathBuf, Entry)>,
    /// Host paths of the ELF files whose libraries are included.
    linked: Vec<PathBuf>,
    accounts: Vec<Account>,
    settings: oci::Settings,
    /// In OCI terms.
    architecture: &'static str,
    compressed: bool,
}

#[derive(Debug, Clone)]
struct Account {
    name: String,
    uid: u32,
    gid: u32,
    home: String,
}

impl Image {
    /// An empty image with its full name, such as `registry.k8s.io/kube-proxy:v1.37.0`.
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            entries: Vec::new(),
            linked: Vec::new(),
            accounts: Vec::new(),
            settings: oci::Settings::default(),
            architecture: architecture::of_this_machine(),
            compressed: false,
        }
    }

    /// The image's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Adds a program of the host, with its loader and libraries.
    ///
    /// If the host's path is a symbolic link to a program of another name, as `iptables` is to
    /// `xtables-nft-multi`, the image gets the same link and the program beside it: such programs
    /// look at the name they were called by.
    pub(crate) fn program(
        mut self,
        host: impl AsRef<Path>,
        destination: impl Into<PathBuf>,
    ) -> Result<Self, Error> {
        let host = host.as_ref();
        let destination = destination.into();
        let real = closure::elf(host)?;
        let beside =
            real.file_name().filter(|name| host.is_symlink() && Some(*name) != destination.file_name());
        let program = match beside {
            None => destination,
            Some(name) => {
                let program = destination.with_file_name(name);
                self.entries.push((destination, Entry::link(name)));
                program
            }
        };
        self.entries.push((program, Entry::file(real.clone(), 0o755)));
        self.linked.push(real);
        Ok(self)
    }

    /// Adds every `*.so` of a directory, at the same path, with the libraries they need. For
    /// plugins that a program loads with dlopen and `ldd` cannot see, such as the iptables
    /// extensions.
    pub(crate) fn plugins(mut self, directory: impl AsRef<Path>) -> Result<Self, Error> {
        let directory = directory.as_ref();
        let listing = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let listing = listing.map_err(at("list the plugins in", directory))?;
        let mut paths: Vec<_> = listing.iter().map(fs::DirEntry::path).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "so"));
        // The order of directory entries differs between machines, and the digest of the inputs
        // depends on it.
        paths.sort();
        for path in paths {
            self = self.program(&path, &path)?;
        }
        Ok(self)
    }

    /// Adds a file of the host without libraries. Links are followed. Only the executable bit of
    /// its mode is kept.
    pub(crate) fn file(
        mut self,
        host: impl AsRef<Path>,
        destination: impl Into<PathBuf>,
    ) -> Result<Self, Error> {
        let real = fs::canonicalize(&host).map_err(at("read", host.as_ref()))?;
        let mode = fs::metadata(&real).map_err(at("read", &real))?.permissions().mode();
        let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
        self.entries.push((destination.into(), Entry::file(real, mode)));
        Ok(self)
    }

    /// Adds a file with this content.
    pub(crate) fn content(
        mut self,
        destination: impl Into<PathBuf>,
        content: impl Into<Vec<u8>>,
        mode: u32,
    ) -> Self {
        self.entries.push((destination.into(), Entry::content(content, mode)));
        self
    }

    /// Adds a symbolic link. The target is stored unchanged.
    pub(crate) fn symlink(mut self, destination: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Self {
        self.entries.push((destination.into(), Entry::link(target)));
        self
    }

    /// Adds a directory. Parent directories of files are added automatically.
    pub(crate) fn directory(mut self, destination: impl Into<PathBuf>, mode: u32) -> Self {
        self.entries.push((destination.into(), Entry::directory(mode)));
        self
    }

    /// Adds a user, with a group of the same name, to `/etc/passwd` and `/etc/group`. Both then
    /// list root too.
    pub(crate) fn passwd_entry(
        mut self,
        name: impl Into<String>,
        uid: u32,
        gid: u32,
        home: impl Into<String>,
    ) -> Self {
        self.accounts.push(Account { name: name.into(), uid, gid, home: home.into() });
        self
    }

    /// Sets the entrypoint of containers.
    pub(crate) fn entrypoint<S: Into<String>>(mut self, command: impl IntoIterator<Item = S>) -> Self {
        self.settings.entrypoint = command.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the user: `uid`, `uid:gid` or a name from `passwd_entry`.
    pub(crate) fn user(mut self, user: impl Into<String>) -> Self {
        self.settings.user = user.into();
        self
    }

    /// Adds a label.
    pub(crate) fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.labels.insert(key.into(), value.into());
        self
    }

    /// Sets the architecture to that of a program on the host, which may be built for another one.
    pub(crate) fn architecture_of(mut self, program: &Path) -> Result<Self, Error> {
        self.architecture = architecture::of(program)?;
        Ok(self)
    }

    /// Compresses the layer. Worthwhile for images that are sent over a network.
    pub(crate) fn compressed(mut self) -> Self {
        self.compressed = true;
        self
    }

    /// A digest of paths, sizes, modification times and settings. While it is unchanged, so is the
    /// archive. It reads no file's content and resolves no libraries; their changes show in the
    /// loader's cache.
    pub(crate) fn inputs_digest(&self) -> Result<Digest, Error> {
        let mut entries = Vec::new();
        for (path, entry) in &self.described() {
            let kind = match &entry.kind {
                Kind::File(source) => stamp(source)?,
                Kind::Content(content) => json!(Digest::of(content).to_string()),
                Kind::Link(target) => json!(target.to_string_lossy()),
                Kind::Directory => Value::Null,
            };
            entries.push(json!([path.to_string_lossy(), entry.kind.word(), kind, entry.mode]));
        }
        let cache = Path::new(LOADER_CACHE);
        let cache = if self.linked.is_empty() || !cache.exists() { Value::Null } else { stamp(cache)? };
        let settings = self.settings.to_json();
        Ok(Digest::of(
            json!([FORMAT, self.name, self.architecture, self.compressed, settings, cache, entries])
                .to_string()
                .as_bytes(),
        ))
    }

    /// Writes the archive atomically.
    pub(crate) fn write_archive(&self, archive: impl AsRef<Path>) -> Result<(), Error> {
        oci::write(archive.as_ref(), &[self.contents()?])
    }

    /// Writes several images to one archive, atomically. Images that follow each other with the
    /// same name become one image for several architectures.
    pub(crate) fn write_archive_of(images: &[Self], archive: &Path) -> Result<(), Error> {
        let contents = images.iter().map(Self::contents).collect::<Result<Vec<_>, _>>()?;
        oci::write(archive, &contents)
    }

    fn contents(&self) -> Result<oci::Contents<'_>, Error> {
        Ok(oci::Contents {
            name: &self.name,
            architecture: self.architecture,
            rootfs: self.rootfs()?,
            settings: &self.settings,
            compressed: self.compressed,
        })
    }

    /// Writes the files as an initramfs. Only the owner can read it, because it may contain
    /// secrets.
    pub(crate) fn write_initramfs(&self, archive: &Path) -> Result<(), Error> {
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(archive).map_err(at("write", archive))?;
        cpio::write(&self.rootfs()?, io::BufWriter::new(file), archive)
    }

    fn rootfs(&self) -> Result<Rootfs, Error> {
        let mut entries = self.described();
        entries.extend(closure::of(&self.linked)?);
        Rootfs::assemble(entries)
    }

    /// All entries except the libraries.
    fn described(&self) -> Vec<(PathBuf, Entry)> {
        let mut entries = self.entries.clone();
        if !self.accounts.is_empty() {
            let mut passwd = "root:x:0:0:root:/root:/sbin/nologin\n".to_owned();
            let mut group = "root:x:0:\n".to_owned();
            for Account { name, uid, gid, home } in &self.accounts {
                let _ = writeln!(passwd, "{name}:x:{uid}:{gid}:{name}:{home}:/sbin/nologin");
                let _ = writeln!(group, "{name}:x:{gid}:");
            }
            entries.push(("/etc/passwd".into(), Entry::content(passwd, 0o644)));
            entries.push(("/etc/group".into(), Entry::content(group, 0o644)));
        }
        entries
    }
}

/// Identifies a file's version without reading its content.
fn stamp(file: &Path) -> Result<Value, Error> {
    let metadata = fs::metadata(file).map_err(at("read", file))?;
    Ok(json!([file.to_string_lossy(), metadata.size(), metadata.mtime(), metadata.mtime_nsec()]))
}

#[cfg(test)]
mod tests;
