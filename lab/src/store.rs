//! A prepared containerd store with the lab's images. Importing and unpacking them on every node at
//! every start would dominate the startup time. Instead this is done once per set of images, and
//! every node gets a copy made of hard links. The linked files are lower layers of containers and
//! are never written. A store with the programs of this workspace, which change with every build,
//! extends one without them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::command;
use crate::dirs;
use crate::image::Digest;
use crate::lab::LabError;
use crate::provision::{Programs, Progress};

/// The number of stores to keep. Each is as large as the images that it adds.
const KEPT: usize = 6;
/// How the names of incomplete stores begin.
const PARTIAL: &str = "partial-";

pub(crate) struct Store {
    path: PathBuf,
    key: String,
}

/// The store with exactly these images, created if it does not exist.
pub(crate) fn prepared(
    programs: &Programs,
    archives: &[PathBuf],
    progress: Progress,
) -> Result<Store, LabError> {
    placed(key(archives), progress, |partial| {
        fs::create_dir_all(partial).map_err(|source| file(partial, source))?;
        import(partial, programs, archives)
    })
}

/// Finds a store by its key, or fills one.
fn placed(
    key: String,
    progress: Progress,
    fill: impl FnOnce(&Path) -> Result<(), LabError>,
) -> Result<Store, LabError> {
    let stores = dirs::cache()?.join("stores");
    fs::create_dir_all(&stores).map_err(|source| file(&stores, source))?;
    let path = stores.join(&key);
    if !path.is_dir() {
        progress("unpacking the images");
        place(&path, fill)?;
        forget_older(&stores);
    }
    // The least recently used stores are removed. Failing to note the use makes a copy at worst.
    let _ = fs::File::open(&path).and_then(|store| store.set_modified(SystemTime::now()));
    Ok(Store { path, key })
}

/// Fills a directory and renames it. Several processes and threads may do this for the same path.
fn place(path: &Path, fill: impl FnOnce(&Path) -> Result<(), LabError>) -> Result<(), LabError> {
    let fail = |source| file(path, source);
    let stores = path.parent().unwrap_or(path);
    let partial = tempfile::Builder::new().prefix(PARTIAL).tempdir_in(stores).map_err(fail)?;
    let whole = partial.path().join("store");
    fill(&whole)?;
    match fs::rename(&whole, path) {
        // Another process was faster.
        Err(_) if path.is_dir() => Ok(()),
        renamed => renamed.map_err(fail),
    }
}

impl Store {
    /// The store with these images in addition, created if it does not exist.
    pub(crate) fn with(
        self,
        programs: &Programs,
        archives: &[PathBuf],
        progress: Progress,
    ) -> Result<Self, LabError> {
        if archives.is_empty() {
            return Ok(self);
        }
        let key = key(&[&[PathBuf::from(&self.key)], archives].concat());
        placed(key, progress, |partial| {
            self.copy_to(partial)?;
            import(partial, programs, archives)
        })
    }

    /// Creates a node's own copy of the store.
    pub(crate) fn copy_to(&self, target: &Path) -> Result<(), LabError> {
        let parent = target.parent().unwrap_or(target);
        fs::create_dir_all(parent).map_err(|source| file(parent, source))?;
        let copy = |how: &str| {
            let mut copy = Command::new("cp");
            command::run(copy.args(["-a", how, "--no-target-directory"]).arg(&self.path).arg(target))
        };
        // Hard links need the same file system; otherwise the data is copied.
        if copy("--link").is_err() {
            let _ = fs::remove_dir_all(target);
            copy("--reflink=auto")?;
        }
        own_databases(&self.path, target)
    }
}

/// Replaces the databases by copies: containerd writes to them, so nodes must not share them.
fn own_databases(from: &Path, to: &Path) -> Result<(), LabError> {
    for plugin in fs::read_dir(from).map_err(|source| file(from, source))?.flatten() {
        let Ok(entries) = fs::read_dir(plugin.path()) else { continue };
        for entry in entries.flatten().filter(|entry| entry.path().extension().is_some_and(|end| end == "db"))
        {
            let copy = to.join(plugin.file_name()).join(entry.file_name());
            fs::remove_file(&copy)
                .and_then(|()| fs::copy(entry.path(), &copy))
                .map_err(|source| file(&copy, source))?;
        }
    }
    Ok(())
}

fn key(archives: &[PathBuf]) -> String {
    // An archive's name ends in the digest of its contents.
    let names: Vec<&[u8]> = archives.iter().map(|path| path.as_os_str().as_encoded_bytes()).collect();
    Digest::of(&names.join(&b'\n')).hex()[..16].to_owned()
}

/// Imports images to the store in a directory.
fn import(root: &Path, programs: &Programs, archives: &[PathBuf]) -> Result<(), LabError> {
    let run = tempfile::tempdir().map_err(|source| file(Path::new("/tmp"), source))?;
    let socket = run.path().join("c.sock");
    let configuration = run.path().join("config.toml");
    let text = configuration_text(root, run.path(), &socket);
    fs::write(&configuration, text).map_err(|source| file(&configuration, source))?;

    // Unpacking creates mounts; a private mount namespace hides them from the host.
    let mut containerd = Command::new("unshare");
    containerd
        .args(["--mount", "--propagation=private", "--"])
        .arg(programs.path("containerd")?)
        .arg("--config")
        .arg(&configuration)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(run.path().join("log")).map_err(|source| file(run.path(), source))?);
    let child = containerd
        .spawn()
        .map_err(|source| command::CommandError::Start { command: command::describe(&containerd), source })?;
    let mut running = Running(child);
    running.wait_for(&socket, &run.path().join("log"))?;
    for archive in archives {
        let mut import = Command::new(programs.path("ctr")?);
        import.arg("--address").arg(&socket).args(["--namespace=k8s.io", "images", "import"]).arg(archive);
        command::run(&mut import)?;
    }
    running.end();
    Ok(())
}

/// The configuration of a containerd that only imports images.
fn configuration_text(root: &Path, run: &Path, socket: &Path) -> String {
    format!(
        r#"version = 3
root = "{root}"
state = "{run}/state"
disabled_plugins = ["io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "io.containerd.nri.v1.nri"]

[grpc]
address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
path = "{run}/opt"
"#,
        root = root.display(),
        run = run.display(),
        socket = socket.display(),
    )
}

/// A containerd process that ends with this value.
struct Running(Child);

impl Running {
    fn wait_for(&mut self, socket: &Path, log: &Path) -> Result<(), LabError> {
        let (started, limit) = (Instant::now(), Duration::from_secs(30));
        while std::os::unix::net::UnixStream::connect(socket).is_err() {
            let ended = matches!(self.0.try_wait(), Ok(Some(_)));
            if ended || started.elapsed() > limit {
                let text = fs::read_to_string(log).unwrap_or_default();
                let detail = format!("the end of its log:\n{}", command::last_lines(&text, 5));
                return Err(LabError::Timeout { what: "containerd", seconds: limit, detail });
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Stops it with SIGTERM, so that its databases are complete.
    fn end(&mut self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.0.id()).unwrap_or_default());
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// Removes all but the most recently used stores.
fn forget_older(stores: &Path) {
    let Ok(entries) = fs::read_dir(stores) else { return };
    let used =
        |path: &Path| path.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut all: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PARTIAL)))
        .collect();
    all.sort_by_key(|path| std::cmp::Reverse(used(path)));
    for old in all.into_iter().skip(KEPT) {
        let _ = fs::remove_dir_all(old);
    }
}

fn file(path: &Path, source: std::io::Error) -> LabError {
    LabError::File { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_another_one_completes_meanwhile_is_used() {
        let stores = tempfile::tempdir().unwrap();
        let path = stores.path().join("0123456789abcdef");
        let write = |partial: &Path, file: &str| fs::write(partial.join(file), "complete").unwrap();
        let placed = place(&path, |slow| {
            fs::create_dir_all(slow).unwrap();
            write(slow, "content.db");
            place(&path, |fast| {
                fs::create_dir_all(fast).unwrap();
                write(fast, "content.db");
                write(fast, "meta.db");
                Ok(())
            })?;
            write(slow, "meta.db");
            Ok(())
        });
        assert!(placed.is_ok(), "{placed:?}");
        assert_eq!(fs::read_to_string(path.join("meta.db")).unwrap(), "complete");
        assert_eq!(fs::read_dir(stores.path()).unwrap().count(), 1, "something was left behind");
    }

    #[test]
    fn a_store_that_cannot_be_filled_leaves_nothing_behind() {
        let stores = tempfile::tempdir().unwrap();
        let path = stores.path().join("0123456789abcdef");
        let failed = place(&path, |partial| {
            fs::create_dir_all(partial).unwrap();
            Err(file(partial, std::io::ErrorKind::StorageFull.into()))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(stores.path()).unwrap().count(), 0);
    }
}
