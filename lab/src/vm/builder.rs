//! Describes and starts a virtual machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::sync::Mutex;

use super::protocol::{IDENTITY, Identity, Request};
use super::qemu::{self, Files};
use super::{Vm, VmError, console_file, modules};
use crate::command;
use crate::image::Image;
use crate::images;
use crate::lab::{Lab, LabError, Place, blocking};
use crate::provision::{self, Kernel};
use crate::topology::{Node, NodeName};

const BOOT_DEADLINE: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(50);

/// Describes a virtual machine and boots it.
#[derive(Debug, Clone)]
pub struct VmBuilder {
    name: String,
    programs: Vec<(PathBuf, String)>,
    files: Vec<(String, String)>,
}

impl VmBuilder {
    pub(super) fn new(name: String) -> Self {
        Self { name, programs: Vec::new(), files: Vec::new() }
    }

    /// Adds a program of the host, with the libraries it links to.
    #[must_use]
    pub fn program(mut self, host: impl Into<PathBuf>, destination: impl Into<String>) -> Self {
        self.programs.push((host.into(), destination.into()));
        self
    }

    /// Adds a file that only root can read.
    #[must_use]
    pub fn file(mut self, destination: impl Into<String>, content: impl Into<String>) -> Self {
        self.files.push((destination.into(), content.into()));
        self
    }

    /// Provides missing parts, starts the machine and waits until it answers.
    pub async fn boot(self, lab: &Lab) -> Result<Vm<'_>, VmError> {
        let name = NodeName::try_from(self.name.clone()).map_err(LabError::from)?;
        let node = next_node(lab, name).await?;
        let files = Files {
            initramfs: lab.directory().path().join(format!("{}.initramfs", node.name)),
            control: lab.directory().path().join(format!("{}.control", node.name)),
            console: console_file(lab, node.name.as_str()),
        };
        let identity = Identity { topology: lab.topology().clone(), node: node.clone() };
        let kernel = provision(self, identity, files.initramfs.clone()).await?;
        let mut vm = start(lab, node, &kernel, &files).await?;
        vm.connect(&files.control).await?;
        // The kernel has unpacked it.
        let _ = fs::remove_file(&files.initramfs);
        Ok(vm)
    }

    fn image(&self, kernel: &Kernel, identity: &Identity) -> Result<Image, LabError> {
        let identity = serde_json::json!(identity).to_string();
        let mut image = with_modules(images::machine()?, kernel)?.content(IDENTITY, identity, 0o644);
        for (host, destination) in &self.programs {
            image = image.program(host, destination)?;
        }
        for (destination, content) in &self.files {
            image = image.content(destination, content.as_str(), 0o600);
        }
        Ok(image)
    }
}

/// The first free address after the nodes and the existing machines. An existing link on the fabric
/// marks an address as taken.
async fn next_node(lab: &Lab, name: NodeName) -> Result<Node, LabError> {
    for node in lab.topology().beyond(&name)? {
        let taken = lab.exec(&Place::ControlPlane, &["ip", "link", "show", "dev", &node.cable()]).await?;
        if !taken.success {
            return Ok(node);
        }
    }
    Err(LabError::Full)
}

async fn provision(vm: VmBuilder, identity: Identity, initramfs: PathBuf) -> Result<Kernel, LabError> {
    blocking(move || {
        let kernel = provision::machine(|_| {})?;
        vm.image(&kernel, &identity)?.write_initramfs(&initramfs)?;
        Ok(kernel)
    })
    .await
}

/// Adds the kernel modules and their indexes.
fn with_modules(mut image: Image, kernel: &Kernel) -> Result<Image, LabError> {
    let fail = |source| LabError::File { path: kernel.modules.clone(), source };
    let release = kernel.modules.file_name().unwrap_or_default();
    let place = Path::new("/lib/modules").join(release);
    let dependencies = fs::read_to_string(kernel.modules.join("modules.dep")).map_err(fail)?;
    for module in modules::wanted(&dependencies) {
        image = image.file(kernel.modules.join(module), place.join(module))?;
    }
    for entry in fs::read_dir(&kernel.modules).map_err(fail)? {
        let index = entry.map_err(fail)?;
        if index.path().is_file() {
            image = image.file(index.path(), place.join(index.file_name()))?;
        }
    }
    Ok(image)
}

async fn start<'a>(lab: &'a Lab, node: Node, kernel: &Kernel, files: &Files) -> Result<Vm<'a>, VmError> {
    let cable = node.cable();
    for arguments in [
        &["ip", "tuntap", "add", "dev", &cable, "mode", "tap"][..],
        &["ip", "link", "set", "dev", &cable, "master", "fabric", "up"],
    ] {
        let output = lab.exec(&Place::ControlPlane, arguments).await?;
        command::check(&arguments.join(" "), output).map_err(LabError::from)?;
    }
    let remove_cable = lab.command_in(&Place::ControlPlane, &["ip", "link", "delete", "dev", &cable]).await?;
    let mut qemu = lab
        .command_in(&Place::ControlPlane, &qemu::arguments(lab.topology().families, &node, kernel, files))
        .await?;
    let qemu = spawn(&mut qemu, &files.console)?;
    Ok(Vm { lab, node, qemu, remove_cable, control: Mutex::new(None) })
}

fn spawn(qemu: &mut Command, log: &Path) -> Result<std::process::Child, LabError> {
    let fail = |source| LabError::File { path: log.to_owned(), source };
    let output = fs::OpenOptions::new().create(true).append(true).open(log).map_err(fail)?;
    let errors = output.try_clone().map_err(fail)?;
    qemu.stdin(Stdio::null()).stdout(output).stderr(errors);
    Ok(qemu
        .spawn()
        .map_err(|source| command::CommandError::Start { command: command::describe(qemu), source })?)
}

impl Vm<'_> {
    /// Connects to qemu's end of the serial port and waits for the machine's first answer.
    async fn connect(&mut self, socket: &Path) -> Result<(), VmError> {
        let started = Instant::now();
        let stream = loop {
            let error = match UnixStream::connect(socket).await {
                Ok(stream) => break stream,
                Err(error) => error,
            };
            if let Ok(Some(status)) = self.qemu.try_wait() {
                return Err(self.lost(&format!("did not start: qemu exited with {status}")));
            }
            if started.elapsed() > BOOT_DEADLINE {
                return Err(self.lost(&format!("did not start: {}: {error}", socket.display())));
            }
            tokio::time::sleep(POLL).await;
        };
        *self.control.lock().await = Some(BufReader::new(stream));
        self.ask_guest(&Request::Ready, BOOT_DEADLINE).await.map(drop)
    }
}
