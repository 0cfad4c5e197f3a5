//! Finds the libraries that programs need: the loader and everything that `ldd` lists, with every
//! symbolic link on the path to the real file.
//!
//! Input is a list of host paths, output is a list of entries at the same paths. Files that a
//! program opens at run time are not found.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::Read as _,
    path::{Component, Path, PathBuf},
    process::Command,
};

use super::{
    error::{Error, at},
    rootfs::{Entry, joined},
};

/// The kernel's limit.
const MOST_LINKS: usize = 40;

/// Checks that a file is ELF and returns its real path.
pub(super) fn elf(host: &Path) -> Result<PathBuf, Error> {
    let real = fs::canonicalize(host).map_err(at("read the program", host))?;
    let mut magic = [0; 4];
    let length = File::open(&real)
        .and_then(|mut file| file.read(&mut magic))
        .map_err(at("read the program", &real))?;
    if magic[..length] == *b"\x7fELF" { Ok(real) } else { Err(Error::NotElf { program: host.to_owned() }) }
}

/// Entries for all libraries that the programs link to.
pub(super) fn of(programs: &[PathBuf]) -> Result<Vec<(PathBuf, Entry)>, Error> {
    let mut entries = Vec::new();
    for library in libraries(programs)? {
        let (links, real) = trace(&library)?;
        entries.extend(links.into_iter().map(|(path, target)| (path, Entry::link(target))));
        entries.push((real.clone(), Entry::file(real, 0o755)));
    }
    Ok(entries)
}

/// Runs `ldd` once for all programs: it is a shell script, and its startup dominates.
fn libraries(programs: &[PathBuf]) -> Result<BTreeSet<PathBuf>, Error> {
    // Several names of one program count once.
    let programs: BTreeSet<&PathBuf> = programs.iter().collect();
    let Some(first) = programs.first() else { return Ok(BTreeSet::new()) };
    let output = Command::new("ldd")
        .args(&programs)
        .env("LC_ALL", "C")
        .output()
        .map_err(|source| Error::Ldd { program: (*first).clone(), source })?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && !stderr.lines().all(is_static) {
        let named: Vec<_> = programs.iter().map(|program| program.to_string_lossy()).collect();
        return Err(Error::LddFailed { programs: named.join(", "), said: stderr.trim().to_owned() });
    }
    parse(&String::from_utf8_lossy(&output.stdout), first)
}

/// Whether the line is `ldd`'s output for a program without libraries, such as a static Go binary.
/// `ldd` then exits with 1 and does not name the program.
fn is_static(line: &str) -> bool {
    matches!(line.trim(), "not a dynamic executable" | "statically linked" | "")
}

/// Parses `ldd`'s output. It prints a heading per program, unless there is only one program.
fn parse(output: &str, first: &Path) -> Result<BTreeSet<PathBuf>, Error> {
    let mut program = first;
    let mut libraries = BTreeSet::new();
    for line in output.lines() {
        if let Some(heading) = line.strip_suffix(':').filter(|_| line.starts_with('/')) {
            program = Path::new(heading);
            continue;
        }
        let line = line.trim();
        let (name, place) = line.split_once(" => ").unwrap_or((line, line));
        if place.starts_with("not found") {
            return Err(Error::MissingLibrary { program: program.to_owned(), library: name.to_owned() });
        }
        // Lines without a path, such as linux-vdso.so.1, are provided by the kernel.
        if place.starts_with('/') {
            let path = place.rsplit_once(" (").map_or(place, |(path, _)| path);
            libraries.insert(PathBuf::from(path));
        }
    }
    Ok(libraries)
}

/// Every symbolic link on the path to a file, as (link-free path of the link, its target as on the
/// host), and the real file.
fn trace(path: &Path) -> Result<(Vec<(PathBuf, PathBuf)>, PathBuf), Error> {
    let mut links = Vec::new();
    let mut current = joined(Path::new("/"), path);
    for _ in 0..MOST_LINKS {
        let Some((link, target, rest)) = first_link(&current)? else {
            fs::metadata(&current).map_err(at("read the library", &current))?;
            return Ok((links, current));
        };
        current = joined(link.parent().unwrap_or(Path::new("/")), &target.join(rest));
        links.push((link, target));
    }
    Err(Error::LinkLoop { path: path.to_owned() })
}

/// The first component of a path that is a link, its target, and the rest of the path.
fn first_link(path: &Path) -> Result<Option<(PathBuf, PathBuf, PathBuf)>, Error> {
    let mut walked = PathBuf::new();
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        walked.push(part);
        if part != Component::RootDir && walked.is_symlink() {
            let target = fs::read_link(&walked).map_err(at("read the link", &walked))?;
            return Ok(Some((walked, target, parts.as_path().to_owned())));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
