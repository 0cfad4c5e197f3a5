//! Writes a root file system as an initramfs, in cpio's "newc" format. An entry is a header of
//! hexadecimal numbers, a name and the content, each padded to a multiple of four bytes.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

use super::{
    error::{Error, at},
    rootfs::{Entry, Kind, Rootfs},
};

const LAST: &[u8] = b"TRAILER!!!";

/// Writes the archive to `out`. `archive` is used in error messages only.
pub(super) fn write(rootfs: &Rootfs, mut out: impl Write, archive: &Path) -> Result<(), Error> {
    // Inode numbers must differ: the kernel treats entries with the same number as one file.
    for ((path, entry), number) in rootfs.iter().zip(1_u32..) {
        append(&mut out, number, path, entry, archive)?;
    }
    let end = header(&mut out, 0, 0, 0, LAST).and_then(|()| out.flush());
    end.map_err(at("write", archive))
}

fn append(
    out: &mut impl Write,
    number: u32,
    path: &Path,
    entry: &Entry,
    archive: &Path,
) -> Result<(), Error> {
    let name = path.strip_prefix("/").unwrap_or(path).as_os_str().as_bytes();
    let mut add = |kind: u32, length: u64, content: &mut dyn Read| {
        let length = u32::try_from(length).map_err(|_| io::Error::other("a file of 4 GiB or more"))?;
        header(out, number, kind | entry.mode, length, name)?;
        let written = io::copy(&mut content.take(length.into()), out)?;
        fill(out, u64::from(length))?;
        Ok(written == u64::from(length))
    };
    let complete = match &entry.kind {
        Kind::File(host) => {
            let mut file = File::open(host).map_err(at("read", host))?;
            let length = fs::metadata(host).map_err(at("read", host))?.len();
            let complete = add(0o100_000, length, &mut file).map_err(at("write", archive))?;
            // The header has already declared this length.
            return if complete { Ok(()) } else { Err(Error::Changed { path: host.clone() }) };
        }
        Kind::Content(content) => add(0o100_000, content.len() as u64, &mut content.as_slice()),
        Kind::Link(target) => {
            let target = target.as_os_str().as_bytes();
            add(0o120_000, target.len() as u64, &mut &target[..])
        }
        Kind::Directory => add(0o040_000, 0, &mut io::empty()),
    };
    complete.map(drop).map_err(at("write", archive))
}

fn header(out: &mut impl Write, number: u32, mode: u32, length: u32, name: &[u8]) -> io::Result<()> {
    // The length of a name includes its NUL terminator.
    let name_length = u32::try_from(name.len() + 1).map_err(io::Error::other)?;
    let (owner, group, links, time, devices, check) = (0, 0, 1, 0, [0; 4], 0);
    let numbers = [number, mode, owner, group, links, time, length]
        .into_iter()
        .chain(devices)
        .chain([name_length, check]);
    out.write_all(b"070701")?;
    for number in numbers {
        write!(out, "{number:08x}")?;
    }
    out.write_all(name)?;
    out.write_all(&[0])?;
    // The header before the name has 6 + 13 * 8 = 110 bytes.
    fill(out, 110 + u64::from(name_length))
}

/// Pads to a multiple of four bytes.
fn fill(out: &mut impl Write, length: u64) -> io::Result<()> {
    let missing = length.next_multiple_of(4) - length;
    io::copy(&mut io::repeat(0).take(missing), out).map(drop)
}

#[cfg(test)]
mod tests;
