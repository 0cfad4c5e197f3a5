use anstream::adapter::strip_str;

use super::*;

#[test]
fn verdicts_and_fields_are_painted_and_the_text_stays_the_same() {
    let text = "web: Ready, all is well\n  problem    it is\n             : Ready\nnot a name: Ready\nweb becomes Ready: yes\n";
    let painted = paint(text);
    assert_eq!(strip_str(&painted).to_string(), text);
    assert_eq!(
        painted.lines().map(|line| line.contains('\u{1b}')).collect::<Vec<_>>(),
        [true, true, false, false, true]
    );
}

#[test]
fn severities_are_painted_at_the_beginning_of_a_line() {
    let text = "error ISP305  Service a/b: it is\nwarning ISP307  c\nnote ISP314  d\nerrors of others\n";
    let painted = paint(text);
    assert_eq!(strip_str(&painted).to_string(), text);
    assert_eq!(
        painted.lines().map(|line| line.starts_with('\u{1b}')).collect::<Vec<_>>(),
        [true, true, true, false]
    );
}

#[test]
fn symbols_of_conditions_are_painted() {
    let text = "web   Progressing  ✖      ✔        3d\n";
    let painted = paint(text);
    assert_eq!(strip_str(&painted).to_string(), text);
    assert!(painted.contains(&format!("{BAD}✖{BAD:#}")) && painted.contains(&format!("{GOOD}✔{GOOD:#}")));
}

#[test]
fn the_first_locale_variable_that_is_set_chooses_the_symbols() {
    let locale = |variables: [&str; 3]| {
        let set = |value: &str| (value != "unset").then(|| value.to_owned());
        Symbols::of_locale(variables.map(set))
    };
    for (variables, expected) in [
        (["unset", "unset", "en_US.UTF-8"], Symbols::Unicode),
        (["unset", "C.utf8", "C"], Symbols::Unicode),
        (["", "", "de_DE.UTF-8"], Symbols::Unicode),
        (["C", "unset", "en_US.UTF-8"], Symbols::Ascii),
        (["POSIX", "C.UTF-8", "C.UTF-8"], Symbols::Ascii),
        (["unset", "unset", "de_DE.ISO-8859-1"], Symbols::Ascii),
        (["unset", "unset", "unset"], Symbols::Ascii),
    ] {
        assert_eq!(locale(variables), expected, "{variables:?}");
    }
}

struct Closed(ErrorKind);

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_is_no_error_and_a_full_disk_is() {
    assert_eq!(write(&mut Closed(ErrorKind::BrokenPipe), "x").ok(), Some(Reader::Closed));
    assert!(write(&mut Closed(ErrorKind::StorageFull), "x").is_err());
}
