//! Selects the kernel modules of a machine: all of netfilter, and what its devices and kube-proxy
//! need. The kernel loads most of them on demand.

use std::collections::BTreeSet;
use std::path::Path;

/// Directories that are included completely: they are small, and the required modules depend on the
/// programs.
const WHOLE: [&str; 3] =
    ["kernel/net/netfilter/", "kernel/net/ipv4/netfilter/", "kernel/net/ipv6/netfilter/"];
/// Modules to load at boot: the devices, and `br_netfilter`, as nodes have it.
const FIRST: [&str; 4] = ["virtio_pci", "virtio_net", "virtio_console", "br_netfilter"];
/// Provides the interface that kube-proxy binds addresses to.
const LATER: [&str; 1] = ["dummy"];

/// The command that loads the modules for boot.
pub(super) fn load_command() -> Vec<&'static str> {
    ["modprobe", "--all"].into_iter().chain(FIRST).collect()
}

/// The selected modules, as paths in the kernel's tree, from `modules.dep`. Each of its lines has a
/// module and all its dependencies.
pub(super) fn wanted(dependencies: &str) -> BTreeSet<&str> {
    let lines = dependencies.lines().filter_map(|line| line.split_once(':'));
    let chosen = lines.filter(|(module, _)| {
        WHOLE.iter().any(|directory| module.starts_with(directory))
            || FIRST.into_iter().chain(LATER).any(|name| name == name_of(module))
    });
    chosen.flat_map(|(module, needs)| [module].into_iter().chain(needs.split_whitespace())).collect()
}

/// A module's name: its file name without `.ko` and the compression suffix.
fn name_of(module: &str) -> &str {
    let file = Path::new(module).file_name().and_then(|name| name.to_str()).unwrap_or(module);
    file.split_once(".ko").map_or(file, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_comes_with_what_it_depends_on() {
        let dependencies = "\
            kernel/drivers/net/dummy.ko:\n\
            kernel/drivers/net/tun.ko:\n\
            kernel/drivers/net/virtio_net.ko.xz: kernel/drivers/net/net_failover.ko.xz kernel/net/core/failover.ko.xz\n\
            kernel/net/netfilter/ipvs/ip_vs_rr.ko: kernel/net/netfilter/ipvs/ip_vs.ko kernel/lib/libcrc32c.ko\n\
            kernel/net/netfilter_other/x.ko:\n";
        let wanted: Vec<_> = wanted(dependencies).into_iter().collect();
        assert_eq!(
            wanted,
            [
                "kernel/drivers/net/dummy.ko",
                "kernel/drivers/net/net_failover.ko.xz",
                "kernel/drivers/net/virtio_net.ko.xz",
                "kernel/lib/libcrc32c.ko",
                "kernel/net/core/failover.ko.xz",
                "kernel/net/netfilter/ipvs/ip_vs.ko",
                "kernel/net/netfilter/ipvs/ip_vs_rr.ko",
            ]
        );
    }
}
