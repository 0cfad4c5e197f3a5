use super::*;

#[test]
fn a_line_covers_the_one_before() {
    assert_eq!(frame("reading pods: 100 so far", 0, 80), ("\rreading pods: 100 so far".to_owned(), 24));
    assert_eq!(frame("reading nodes", 15, 80), ("\rreading nodes  ".to_owned(), 13));
    assert_eq!(erased(3), "\r   \r");
}

#[test]
fn a_line_is_plain_and_fits_into_the_terminal() {
    let (text, drawn) = frame("waiting for n\u{f6}de\n\u{1b}[31m in a long line", 0, 20);
    assert_eq!((text.as_str(), drawn), ("\rwaiting for n?de??[", 19));
    assert_eq!(frame("reading", 0, 0), ("\r".to_owned(), 0));
}
