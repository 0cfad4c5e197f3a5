//! qemu's command line. Pure. The CPU is fully emulated, because not every host supports KVM. The
//! machine has only a network card, a console and a serial port for requests.

use std::path::{Path, PathBuf};

use crate::images::MACHINE_INIT;
use crate::provision::Kernel;
use crate::topology::{Families, Node};

const MEMORY: &str = "1280M";

/// The machine's files in the lab's directory.
pub(super) struct Files {
    /// The initramfs.
    pub(super) initramfs: PathBuf,
    /// The socket of the serial port on the host.
    pub(super) control: PathBuf,
    /// The console log, with qemu's own messages.
    pub(super) console: PathBuf,
}

/// The whole command line.
pub(super) fn arguments(families: Families, node: &Node, kernel: &Kernel, files: &Files) -> Vec<String> {
    let (cable, last) = (node.cable(), node.address().octets()[3]);
    let (console, control) = (escaped(&files.console), escaped(&files.control));
    let mut arguments = vec!["qemu-system-x86_64".to_owned()];
    for (option, value) in [
        ("-accel", "tcg".to_owned()),
        ("-m", MEMORY.to_owned()),
        ("-display", "none".to_owned()),
        ("-kernel", kernel.image.display().to_string()),
        ("-initrd", files.initramfs.display().to_string()),
        ("-append", kernel_command_line(families)),
        ("-chardev", format!("file,id=console,append=on,path={console}")),
        ("-serial", "chardev:console".to_owned()),
        ("-chardev", format!("socket,id=control,server=on,wait=off,path={control}")),
        ("-device", "virtio-serial-pci".to_owned()),
        ("-device", "virtserialport,chardev=control".to_owned()),
        ("-netdev", format!("tap,id=fabric,script=no,downscript=no,ifname={cable}")),
        ("-device", format!("virtio-net-pci,netdev=fabric,romfile=,mac=52:54:00:00:00:{last:02x}")),
    ] {
        arguments.extend([option.to_owned(), value]);
    }
    arguments.extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(str::to_owned));
    arguments
}

fn kernel_command_line(families: Families) -> String {
    let mut words = vec!["console=ttyS0", "quiet"];
    // Reboot at once on a kernel panic, or when the first process ends; qemu then exits.
    words.push("panic=-1");
    // Without address space randomization, the emulator reuses translated code between processes.
    // The many short programs that kube-proxy runs then take a fifth of the time.
    words.push("norandmaps");
    // kube-proxy writes rules for every family that the kernel has, which takes seconds.
    if !families.has_ipv6() {
        words.push("ipv6.disable=1");
    }
    // The kernel passes parameters it does not know to the first process: as its environment, and
    // after `--` as its arguments.
    let (path, init) = ("PATH=/usr/local/bin:/usr/sbin:/sbin".to_owned(), format!("rdinit={MACHINE_INIT}"));
    words.extend([path.as_str(), init.as_str(), "--", "guest"]);
    words.join(" ")
}

/// Escapes a path for use inside a qemu option.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    #[test]
    fn a_path_with_a_comma_stays_one_path() {
        let topology = Topology::new(vec!["edge-1".to_owned().try_into().unwrap()], None, Families::Ipv4);
        let node = topology.unwrap().beyond(&"vm-1".to_owned().try_into().unwrap()).unwrap().next().unwrap();
        let kernel = Kernel { image: "/k/vmlinuz".into(), modules: "/k/modules".into() };
        let files = Files { initramfs: "/a,b/i".into(), control: "/a,b/c".into(), console: "/a,b/l".into() };
        let line = arguments(Families::Ipv4, &node, &kernel, &files).join(" ");
        for part in [
            "-initrd /a,b/i ",
            "path=/a,,b/c ",
            "path=/a,,b/l ",
            "ifname=node2 ",
            "mac=52:54:00:00:00:0c ",
            "ipv6.disable=1 ",
            "rdinit=/usr/local/bin/isp-lab -- guest ",
        ] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
    }
}
