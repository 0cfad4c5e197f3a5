//! Writes a root file system as the tar stream of a layer: sorted and without timestamps, so that
//! the same input gives the same bytes.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, Write},
    path::Path,
};

use tar::{Builder, EntryType, Header};

use super::{
    error::{Error, at},
    rootfs::{Entry, Kind, Rootfs},
};

/// Writes the layer to `out`. `archive` is used in error messages only.
pub(super) fn write(rootfs: &Rootfs, out: impl Write, archive: &Path) -> Result<(), Error> {
    let mut tar = Builder::new(out);
    for (path, entry) in rootfs.iter() {
        // Paths in a layer are relative to its root.
        let name = path.strip_prefix("/").unwrap_or(path);
        match &entry.kind {
            Kind::File(host) => {
                let mut file = File::open(host).map_err(at("read", host))?;
                let length = file.metadata().map_err(at("read", host))?.len();
                let mut header = header(entry, EntryType::Regular, length);
                tar.append_data(&mut header, name, (&mut file).take(length)).map_err(at("write", archive))?;
                // The header has already declared this length.
                if file.stream_position().map_err(at("read", host))? != length {
                    return Err(Error::Changed { path: host.clone() });
                }
                Ok(())
            }
            Kind::Content(content) => {
                let length = content.len() as u64;
                tar.append_data(&mut header(entry, EntryType::Regular, length), name, content.as_slice())
            }
            Kind::Link(target) => tar.append_link(&mut header(entry, EntryType::Symlink, 0), name, target),
            Kind::Directory => {
                tar.append_data(&mut header(entry, EntryType::Directory, 0), name.join(""), io::empty())
            }
        }
        .map_err(at("write", archive))?;
    }
    tar.finish().map_err(at("write", archive))
}

fn header(entry: &Entry, kind: EntryType, length: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(length);
    header.set_mode(entry.mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}
