use std::os::unix::fs::symlink;

use super::super::rootfs::{Kind, Rootfs};
use super::*;

const NFT: &str = "\tlinux-vdso.so.1 (0x00007fa2b46d6000)
\tlibnftables.so.1 => /lib/x86_64-linux-gnu/libnftables.so.1 (0x00007fa2b45e3000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007fa2b43c7000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007fa2b46d8000)
";

fn parsed(output: &str) -> Vec<String> {
    let libraries = parse(output, Path::new("/first")).unwrap();
    libraries.into_iter().map(|path| path.display().to_string()).collect()
}

#[test]
fn libraries_and_the_loader_are_read_and_the_kernels_own_is_not() {
    assert_eq!(
        parsed(NFT),
        [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib/x86_64-linux-gnu/libnftables.so.1",
            "/lib64/ld-linux-x86-64.so.2"
        ]
    );
    assert_eq!(parsed(&format!("/usr/sbin/nft:\n{NFT}/tmp/etcd:\n\tstatically linked\n")).len(), 3);
}

#[test]
fn a_missing_library_names_the_program_that_needs_it() {
    for (output, program) in [
        ("\tlibgone.so.1 => not found\n", "/first"),
        (
            "/first:\n\tlibc.so.6 => /lib/libc.so.6 (0x1)\n/usr/sbin/second:\n\tlibgone.so.1 => not found\n",
            "/usr/sbin/second",
        ),
    ] {
        let error = parse(output, Path::new("/first")).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{program} needs the library libgone.so.1")), "{error}");
    }
}

#[test]
fn the_shell_of_this_machine_needs_a_loader_and_libc() {
    let shell = elf(Path::new("/bin/sh")).unwrap();
    let entries = of(&[shell]).unwrap();
    let names: Vec<_> = entries.iter().map(|(path, _)| path.display().to_string()).collect();
    assert!(names.iter().any(|name| name.contains("/ld-")), "{names:?}");
    assert!(names.iter().any(|name| name.contains("libc.")), "{names:?}");
    // The entries do not conflict, and the target of every link is among them.
    let rootfs = Rootfs::assemble(entries).unwrap();
    let placed: BTreeSet<_> = rootfs.iter().map(|(path, _)| path.to_owned()).collect();
    for (path, entry) in rootfs.iter() {
        if let Kind::Link(target) = &entry.kind {
            let (_, real) = trace(&joined(path.parent().unwrap(), target)).unwrap();
            assert!(placed.contains(&real), "{} leads to {}", path.display(), real.display());
        }
    }
}

#[test]
fn what_is_no_elf_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    assert!(matches!(elf(&script), Err(Error::NotElf { program }) if program == script));
    fs::write(&script, "x").unwrap();
    assert!(matches!(elf(&script), Err(Error::NotElf { .. })));
    let error = elf(&directory.path().join("none")).unwrap_err().to_string();
    assert!(error.contains("/none: No such file"), "{error}");
}

#[test]
fn every_link_on_the_way_to_a_file_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(directory.path()).unwrap();
    fs::create_dir_all(root.join("usr/lib/gnu")).unwrap();
    fs::write(root.join("usr/lib/gnu/libc-2.so"), "").unwrap();
    symlink("usr/lib", root.join("lib")).unwrap();
    symlink(root.join("lib/gnu/libc.so.6"), root.join("usr/lib/libc.so")).unwrap();
    symlink("../gnu/libc-2.so", root.join("usr/lib/gnu/libc.so.6")).unwrap();

    let (links, real) = trace(&root.join("lib/libc.so")).unwrap();
    let links: Vec<_> =
        links.iter().map(|(link, _)| link.strip_prefix(&root).unwrap().to_str().unwrap()).collect();
    assert_eq!(links, ["lib", "usr/lib/libc.so", "lib", "usr/lib/gnu/libc.so.6"]);
    assert_eq!(real, root.join("usr/lib/gnu/libc-2.so"));
}

#[test]
fn links_in_a_circle_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let one = directory.path().join("one");
    symlink("two", &one).unwrap();
    symlink("one", directory.path().join("two")).unwrap();
    assert!(matches!(trace(&one), Err(Error::LinkLoop { .. })));
}
