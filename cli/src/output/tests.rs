use anstream::adapter::strip_str;

use super::*;

#[test]
fn what_matters_is_painted_and_nothing_else_changes() {
    let text = "web: Ready, all is well\n  wrong      it is\n             : Ready\nnot a name: Ready\nweb becomes Ready: yes\n";
    let painted = paint(text);
    assert_eq!(strip_str(&painted).to_string(), text);
    assert_eq!(
        painted.lines().map(|line| line.contains('\u{1b}')).collect::<Vec<_>>(),
        [true, true, false, false, true]
    );
}

#[test]
fn how_bad_a_finding_is_is_painted_at_the_beginning_of_its_line() {
    let text = "error ISP305  Service a/b: it is\nwarning ISP307  c\nnote ISP314  d\nerrors of others\n";
    let painted = paint(text);
    assert_eq!(strip_str(&painted).to_string(), text);
    assert_eq!(
        painted.lines().map(|line| line.starts_with('\u{1b}')).collect::<Vec<_>>(),
        [true, true, true, false]
    );
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
fn a_reader_that_has_gone_is_no_error_and_a_full_disk_is() {
    assert_eq!(write(&mut Closed(ErrorKind::BrokenPipe), "x").ok(), Some(Reader::Gone));
    assert!(write(&mut Closed(ErrorKind::StorageFull), "x").is_err());
}
