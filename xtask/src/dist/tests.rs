use std::fs;
use std::path::Path;

use super::{Linking, Platform, flags, is_installed};

#[test]
fn no_directory_of_this_machine_gets_into_a_program() {
    let flags =
        |linking| flags(linking, Path::new("/a b/isp"), Some(Path::new("/home/me/.cargo")), Path::new("/t"));
    let remapped = [
        "--remap-path-prefix=/a b/isp=/src",
        "--remap-path-prefix=/home/me/.cargo=/cargo",
        "--remap-path-prefix=/t=/target",
    ];
    assert_eq!(flags(Linking::Dynamic), remapped);
    assert_eq!(flags(Linking::Static)[0], "-Ctarget-feature=+crt-static");
    assert_eq!(flags(Linking::Static)[1..], remapped);
}

#[test]
fn a_platform_is_installed_if_its_standard_library_is() {
    let sysroot = std::env::temp_dir().join(format!("xtask-sysroot-{}", std::process::id()));
    fs::create_dir_all(sysroot.join("lib/rustlib/aarch64-unknown-linux-gnu/lib")).unwrap();
    assert!(is_installed(&sysroot, Platform::Arm64));
    assert!(!is_installed(&sysroot, Platform::Amd64));
    fs::remove_dir_all(&sysroot).unwrap();
}

#[test]
fn a_platform_has_the_names_that_others_give_it() {
    assert_eq!(Platform::Arm64.to_string(), "linux/arm64");
    assert_eq!(Platform::Arm64.linker_variable(), "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER");
}
