use std::env;

use super::*;

#[test]
fn the_hierarchy_of_version_2_is_found_among_others() {
    let mounts = "25 30 0:23 / /sys rw - sysfs sysfs rw\n\
        31 25 0:27 / /sys/fs/cgroup/pids rw shared:9 - cgroup cgroup rw,pids\n\
        32 25 0:28 / /sys/fs/cgroup/unified rw,relatime shared:10 - cgroup2 cgroup2 rw\n";
    assert_eq!(hierarchy(mounts), Some(PathBuf::from("/sys/fs/cgroup/unified")));
    assert_eq!(hierarchy("25 30 0:23 / /sys rw - sysfs cgroup2 rw\n"), None);
}

/// A directory like that of the kernel.
fn interfaces(name: &str, values: &[(&str, &str)]) -> PathBuf {
    let directory = env::temp_dir().join(format!("pod-redirect-{}-{name}", std::process::id()));
    for (interface, value) in values {
        fs::create_dir_all(directory.join(interface)).unwrap();
        fs::write(directory.join(interface).join("disable_ipv6"), value).unwrap();
    }
    directory
}

#[test]
fn a_namespace_has_ipv6_if_one_of_its_interfaces_has() {
    assert!(!has_ipv6(Path::new("/no/such/directory")).unwrap());
    let off = interfaces("off", &[("all", "0\n"), ("default", "0\n"), ("lo", "1\n"), ("eth0", "1\n")]);
    assert!(!has_ipv6(&off).unwrap());
    let on = interfaces("on", &[("all", "1\n"), ("lo", "1\n"), ("eth0", "0\n")]);
    assert!(has_ipv6(&on).unwrap());
    for directory in [off, on] {
        fs::remove_dir_all(directory).unwrap();
    }
}
