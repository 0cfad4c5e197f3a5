use proptest::prelude::*;

use super::{Attributes, Malformed, Writer};

#[test]
fn nested_values_are_read_as_they_were_written() {
    let mut bytes = Vec::new();
    let mut out = Writer(&mut bytes);
    out.text(1, "abc");
    out.nest(2, |out| {
        out.be32(1, 7);
        out.byte(2, 9);
        out.be64(3, u64::MAX);
    });
    assert_eq!(bytes.len() % 4, 0);

    let all = Attributes(&bytes);
    assert_eq!(all.require(1).unwrap().text(), Ok("abc"));
    let inner = all.require(2).unwrap().nested();
    assert_eq!(inner.require(1).unwrap().be32(), Ok(7));
    assert_eq!(inner.require(2).unwrap().byte(), Ok(9));
    assert_eq!(inner.require(3).unwrap().be64(), Ok(u64::MAX));
    assert_eq!(inner.require(4), Err(Malformed::Missing { kind: 4 }));
}

#[test]
fn a_number_of_another_length_is_named() {
    let mut bytes = Vec::new();
    Writer(&mut bytes).be16(5, 1);
    let error = Attributes(&bytes).require(5).unwrap().be32().unwrap_err();
    assert_eq!(error.to_string(), "attribute 5 of the kernel's answer has 2 bytes instead of 4");
}

#[test]
fn positions_count_from_the_first_byte() {
    let mut bytes = Vec::new();
    let mut out = Writer(&mut bytes);
    out.byte(1, 1);
    out.be32(2, 2);
    let ranges: Vec<_> = Attributes(&bytes).positions().map(|each| each.unwrap().0).collect();
    assert_eq!(ranges, [0..5, 8..16]);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for attribute in Attributes(&bytes).into_iter().flatten() {
            let _ = (attribute.byte(), attribute.be16(), attribute.be32(), attribute.be64(), attribute.text());
            prop_assert!(attribute.nested().into_iter().count() <= bytes.len());
        }
    }
}
