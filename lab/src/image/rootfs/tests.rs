use super::*;

fn assemble(entries: &[(&str, Entry)]) -> Result<Vec<(String, Entry)>, Error> {
    let rootfs = Rootfs::assemble(entries.iter().map(|(path, entry)| (PathBuf::from(path), entry.clone())))?;
    Ok(rootfs.iter().map(|(path, entry)| (path.display().to_string(), entry.clone())).collect())
}

fn paths(entries: &[(&str, Entry)]) -> Vec<String> {
    assemble(entries).unwrap().into_iter().map(|(path, _)| path).collect()
}

fn text() -> Entry {
    Entry::content("text", 0o644)
}

#[test]
fn directories_above_a_file_come_before_it() {
    assert_eq!(
        paths(&[("/usr//bin/nft/", text()), ("/a", text())]),
        ["/a", "/usr", "/usr/bin", "/usr/bin/nft"]
    );
}

#[test]
fn a_directory_that_was_described_keeps_its_mode() {
    let tmp = Entry::directory(0o1777);
    let laid_out = assemble(&[("/tmp/x", text()), ("/tmp", tmp.clone())]).unwrap();
    assert_eq!(laid_out[0], ("/tmp".to_owned(), tmp));
}

#[test]
fn a_file_beneath_a_link_goes_where_the_link_leads() {
    let entries = [
        ("/lib", Entry::link("usr/lib")),
        ("/usr/lib64", Entry::link("../lib/gnu")),
        ("/usr/lib64/ld.so", text()),
        ("/lib/iptables", Entry::link("xtables")),
        ("/lib/iptables/tcp.so", text()),
    ];
    let expected = [
        "/lib",
        "/usr",
        "/usr/lib",
        "/usr/lib/gnu",
        "/usr/lib/gnu/ld.so",
        "/usr/lib/iptables",
        "/usr/lib/xtables",
        "/usr/lib/xtables/tcp.so",
        "/usr/lib64",
    ];
    assert_eq!(paths(&entries), expected);
}

#[test]
fn the_same_entry_twice_is_one() {
    assert_eq!(paths(&[("/a", text()), ("/a", text())]), ["/a"]);
    assert_eq!(
        paths(&[("/lib", Entry::link("usr/lib")), ("/lib/a", text()), ("/usr/lib/a", text())]),
        ["/lib", "/usr", "/usr/lib", "/usr/lib/a"]
    );
}

#[test]
fn two_different_things_at_one_path_are_refused() {
    for (one, other) in [
        (("/a", text()), ("/a", Entry::content("other", 0o644))),
        (("/a", text()), ("/a", Entry::link("b"))),
        (("/a", text()), ("/a/b", text())),
        (("/a", Entry::link("b")), ("/a", Entry::directory(0o755))),
    ] {
        let error = assemble(&[one, other]).unwrap_err();
        assert!(error.to_string().contains("two different entries at /a:"), "{error}");
    }
}

#[test]
fn links_in_a_circle_are_refused() {
    let entries = [("/a", Entry::link("b")), ("/b", Entry::link("a")), ("/a/x", text())];
    assert!(matches!(assemble(&entries), Err(Error::LinkLoop { .. })));
}

#[test]
fn paths_that_are_no_place_in_an_image_are_refused() {
    for path in ["a", "", "/", "/a/../b", "../a"] {
        assert!(matches!(assemble(&[(path, text())]), Err(Error::Destination { .. })), "{path}");
    }
}
