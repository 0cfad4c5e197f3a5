use std::path::PathBuf;

use super::*;

/// Parses and removes the first entry of an archive: number, mode, name, content.
fn next(archive: &mut &[u8]) -> (u32, u32, String, Vec<u8>) {
    let number = |index: usize| {
        let digits = std::str::from_utf8(&archive[6 + 8 * index..14 + 8 * index]).unwrap();
        u32::from_str_radix(digits, 16).unwrap()
    };
    assert_eq!(archive[..6], *b"070701");
    let (inode, mode, length, name_length) = (number(0), number(1), number(6) as usize, number(11) as usize);
    let name = String::from_utf8(archive[110..110 + name_length - 1].to_vec()).unwrap();
    assert_eq!(archive[110 + name_length - 1], 0);
    let start = (110 + name_length).next_multiple_of(4);
    let content = archive[start..start + length].to_vec();
    *archive = &archive[(start + length).next_multiple_of(4)..];
    (inode, mode, name, content)
}

#[test]
fn an_archive_reads_back_as_the_format_says() {
    let directory = tempfile::tempdir().unwrap();
    let tool = directory.path().join("tool");
    fs::write(&tool, "12345").unwrap();
    let entries: [(PathBuf, Entry); 4] = [
        ("/usr/bin/tool".into(), Entry::file(tool, 0o755)),
        ("/bin".into(), Entry::link("usr/bin")),
        ("/etc/word".into(), Entry::content("four", 0o600)),
        ("/tmp".into(), Entry::directory(0o1777)),
    ];
    let mut archive = Vec::new();
    write(&Rootfs::assemble(entries).unwrap(), &mut archive, Path::new("archive")).unwrap();

    let mut rest = archive.as_slice();
    let mut inode = 0;
    for (mode, name, content) in [
        (0o120_777, "bin", "usr/bin"),
        (0o040_755, "etc", ""),
        (0o100_600, "etc/word", "four"),
        (0o041_777, "tmp", ""),
        (0o040_755, "usr", ""),
        (0o040_755, "usr/bin", ""),
        (0o100_755, "usr/bin/tool", "12345"),
    ] {
        inode += 1;
        assert_eq!(next(&mut rest), (inode, mode, name.to_owned(), content.into()));
    }
    assert_eq!(next(&mut rest), (0, 0, "TRAILER!!!".to_owned(), Vec::new()));
    assert!(rest.is_empty());
}
