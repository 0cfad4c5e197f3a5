use std::{collections::BTreeMap, os::unix::fs::symlink, time::SystemTime};

use super::*;

/// Copies a real ELF program to another name, and links to it as Debian's alternatives do.
fn multi_call(directory: &Path) -> PathBuf {
    fs::copy(fs::canonicalize("/bin/sh").unwrap(), directory.join("multi")).unwrap();
    symlink("multi", directory.join("applet-nft")).unwrap();
    symlink(directory.join("applet-nft"), directory.join("alternative")).unwrap();
    symlink(directory.join("alternative"), directory.join("applet")).unwrap();
    directory.join("applet")
}

fn laid_out(image: &Image) -> BTreeMap<PathBuf, Entry> {
    let rootfs = Rootfs::assemble(image.described()).unwrap();
    rootfs.iter().map(|(path, entry)| (path.to_owned(), entry.clone())).collect()
}

#[test]
fn a_link_to_a_program_of_another_name_stays_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let applet = multi_call(directory.path());
    let image = Image::new("a:b")
        .program(&applet, "/usr/sbin/applet")
        .unwrap()
        .program(directory.path().join("applet-nft"), "/usr/sbin/applet-save")
        .unwrap();
    let rootfs = laid_out(&image);
    assert_eq!(rootfs[Path::new("/usr/sbin/applet")].kind, Kind::Link("multi".into()));
    assert_eq!(rootfs[Path::new("/usr/sbin/applet-save")].kind, Kind::Link("multi".into()));
    assert!(matches!(rootfs[Path::new("/usr/sbin/multi")].kind, Kind::File(_)));
}

#[test]
fn a_program_that_is_no_link_gets_the_name_it_is_given() {
    let directory = tempfile::tempdir().unwrap();
    multi_call(directory.path());
    let image = Image::new("a:b").program(directory.path().join("multi"), "/bin/renamed").unwrap();
    let rootfs = laid_out(&image);
    assert!(matches!(rootfs[Path::new("/bin/renamed")].kind, Kind::File(_)));
    assert_eq!(rootfs.len(), 2);
}

#[test]
fn plugins_keep_their_place_and_other_files_stay_behind() {
    let directory = tempfile::tempdir().unwrap();
    let shell = fs::canonicalize("/bin/sh").unwrap();
    fs::copy(&shell, directory.path().join("libxt_CT.so")).unwrap();
    symlink("libxt_CT.so", directory.path().join("libxt_NOTRACK.so")).unwrap();
    fs::write(directory.path().join("README"), "").unwrap();
    let rootfs = laid_out(&Image::new("a:b").plugins(directory.path()).unwrap());
    assert!(matches!(rootfs[&directory.path().join("libxt_CT.so")].kind, Kind::File(_)));
    assert_eq!(rootfs[&directory.path().join("libxt_NOTRACK.so")].kind, Kind::Link("libxt_CT.so".into()));
    assert!(!rootfs.contains_key(&directory.path().join("README")));
}

#[test]
fn accounts_are_written_with_root_first() {
    let rootfs = laid_out(&Image::new("a:b").passwd_entry("istio-proxy", 1337, 1338, "/var/lib/istio"));
    let content = |path: &str| match &rootfs[Path::new(path)].kind {
        Kind::Content(content) => String::from_utf8(content.clone()).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        content("/etc/passwd"),
        "root:x:0:0:root:/root:/sbin/nologin\nistio-proxy:x:1337:1338:istio-proxy:/var/lib/istio:/sbin/nologin\n"
    );
    assert_eq!(content("/etc/group"), "root:x:0:\nistio-proxy:x:1338:\n");
    assert!(laid_out(&Image::new("a:b")).is_empty());
}

#[test]
fn a_file_keeps_of_its_mode_only_whether_it_is_executable() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    for (mode, expected) in [(0o600, 0o644), (0o750, 0o755)] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let rootfs = laid_out(&Image::new("a:b").file(&file, "/file").unwrap());
        assert_eq!(rootfs[Path::new("/file")].mode, expected);
    }
}

#[test]
fn the_digest_of_the_inputs_changes_with_each_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "one").unwrap();
    let image = || Image::new("a:b").file(&file, "/file").unwrap().directory("/tmp", 0o1777);
    let digest = |image: &Image| image.inputs_digest().unwrap();
    let first = digest(&image());
    assert_eq!(digest(&image()), first);
    for other in [
        image().entrypoint(["/file"]),
        image().user("5"),
        image().compressed(),
        image().symlink("/link", "file"),
        image().directory("/home", 0o755),
        image().passwd_entry("a", 5, 5, "/"),
        image().program("/bin/sh", "/bin/sh").unwrap(),
    ] {
        assert_ne!(digest(&other), first, "{other:?}");
    }
    let later = SystemTime::now() + std::time::Duration::from_secs(5);
    fs::File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
    assert_ne!(digest(&image()), first);
}

#[test]
fn a_program_is_archived_with_its_libraries() {
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("sh.tar");
    let image = Image::new("lab/sh:1").program("/bin/sh", "/bin/sh").unwrap().entrypoint(["/bin/sh"]);
    image.write_archive(&archive).unwrap();
    // It contains the whole libc.
    assert!(fs::metadata(&archive).unwrap().len() > 500_000);
}
