use super::{Failure, Reply};
use crate::netlink::attributes::Writer;
use crate::netlink::message::Messages;

/// An answer: header, number, header of the request, attributes.
fn answer(kind: u16, flags: u16, number: i32, details: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut body = number.to_ne_bytes().to_vec();
    if kind == 2 {
        body.extend_from_slice(&[0; 16]);
    }
    details(&mut Writer(&mut body));
    let mut bytes = u32::try_from(16 + body.len()).unwrap().to_ne_bytes().to_vec();
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&42_u32.to_ne_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend(body);
    bytes
}

fn result(bytes: &[u8]) -> Result<(), Failure> {
    match Reply::read(Messages(bytes).next().unwrap().unwrap()).unwrap() {
        Reply::Answered { sequence: 42, result } | Reply::Done { sequence: 42, result, .. } => result,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_acknowledgement_is_no_error() {
    assert_eq!(result(&answer(2, 0x100, 0, |_| {})), Ok(()));
    assert_eq!(result(&answer(3, 0, 0, |_| {})), Ok(()));
}

#[test]
fn an_error_has_the_kernels_reason_and_position() {
    let bytes = answer(2, 0x300, -2, |out| {
        out.text(1, "no such set");
        out.bytes(2, &60_u32.to_ne_bytes());
    });
    let failure = result(&bytes).unwrap_err();
    assert_eq!(failure.to_string(), "No such file or directory (os error 2): no such set");
    assert_eq!(failure.offset, Some(60));
}

#[test]
fn a_changed_generation_is_said_in_words() {
    let failure = result(&answer(2, 0x100, -85, |_| {})).unwrap_err();
    assert_eq!(failure.to_string(), "another program changed nftables meanwhile (ERESTART)");
}

#[test]
fn a_truncated_answer_is_an_error() {
    let bytes = answer(2, 0x100, -1, |_| {});
    for length in 1..19 {
        let read =
            Messages(&bytes[..length]).next().unwrap().and_then(|message| Reply::read(message).map(|_| ()));
        assert!(read.is_err(), "{length}");
    }
}
