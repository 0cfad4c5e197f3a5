use crate::netlink::message::Messages;
use crate::netlink::{Batch, Ownership, TableId};
use crate::nft::{Data, Element, Family, Handle, Name, Operation, Value};

fn id() -> TableId {
    TableId { family: Family::Ip, name: Name::constant("t"), ownership: Ownership::Shared }
}

fn element(number: u32) -> Element {
    let key = vec![Value::Handle(Handle(number)), Value::Index(0)];
    let data = Data::Values(vec![Value::Address([10, 0, 0, 1].into()), Value::Port(80)]);
    Element { set: Name::constant("endpoints"), key, last: None, data }
}

fn batch(elements: u32) -> Batch {
    let mut batch = Batch::new();
    let operations: Vec<_> = (0..elements).map(|number| Operation::AddElement(element(number))).collect();
    batch.apply(&id(), &operations);
    batch
}

/// Type, flags and sequence number of each message.
fn messages(bytes: &[u8]) -> Vec<(u16, u16, u32)> {
    Messages(bytes)
        .map(|message| {
            let message = message.unwrap();
            (message.kind, message.flags, message.sequence)
        })
        .collect()
}

#[test]
fn a_frame_begins_with_the_generation_and_asks_for_an_answer_to_the_last_operation() {
    let mut batch = Batch::new();
    batch.apply(&id(), &[Operation::AddTable, Operation::DeleteSet(Name::constant("s"))]);
    let frame = batch.frame(0..2, 10, Some(7));
    assert_eq!(messages(&frame.bytes), [(0x10, 1, 10), (0xa00, 0x401, 11), (0xa0b, 5, 12), (0x11, 1, 13)]);
    assert_eq!((frame.first, frame.last), (10, 12));
    // The generation, in network order, is the first attribute of the first message.
    assert_eq!(frame.bytes[20..28], [8, 0, 1, 0, 0, 0, 0, 7]);
    assert_eq!(batch.subject(&frame, 12).unwrap().to_string(), "delete set s of table ip t");
    assert_eq!(batch.subject(&frame, 10), None);
    assert_eq!(batch.subject(&frame, 13), None);
}

#[test]
fn the_same_batch_is_framed_again_with_another_generation() {
    let batch = batch(3);
    let (first, second) = (batch.frame(0..1, 1, Some(1)), batch.frame(0..1, 50, Some(2)));
    assert_eq!(first.bytes.len(), second.bytes.len());
    assert_eq!(messages(&second.bytes).iter().map(|each| each.2).collect::<Vec<_>>(), [50, 51, 52]);
}

#[test]
fn elements_share_messages_that_stay_below_the_length_of_an_attribute() {
    let batch = batch(10_000);
    let frame = batch.frame(0..batch.len(), 1, None);
    let lengths: Vec<_> = Messages(&frame.bytes)
        .map(|message| message.unwrap().body.len())
        .filter(|length| *length > 100)
        .collect();
    assert!(batch.len() > 1 && batch.len() < 10, "{}", batch.len());
    assert!(lengths.iter().all(|length| *length < 64 * 1024), "{lengths:?}");
}

#[test]
fn parts_cover_every_operation_once_and_fit_the_limit() {
    let batch = batch(20_000);
    for limit in [70_000, 100_000, 200_000, 10_000_000] {
        let starts = batch.split(limit);
        let ends = starts.iter().copied().skip(1).chain([batch.len()]);
        let mut operations = 0;
        for (start, end) in starts.iter().copied().zip(ends) {
            let frame = batch.frame(start..end, 1, None);
            assert!(frame.bytes.len() <= limit, "{} > {limit}", frame.bytes.len());
            operations += messages(&frame.bytes).len() - 2;
        }
        assert_eq!(operations, batch.len());
    }
    assert_eq!(batch.split(10_000_000), [0]);
    assert!(Batch::new().split(100).is_empty());
}

#[test]
fn the_key_of_a_refused_element_is_found_by_its_position() {
    let batch = batch(3);
    let frame = batch.frame(0..1, 1, Some(1));
    let header = 16 + 4;
    let names = 8 + 16;
    let element = (frame.bytes.len() - 28 - 20 - header - names - 4) / 3;
    let second = header + names + 4 + element;
    assert_eq!(batch.key_at(&frame, 2, second).unwrap(), "0:1 . 0");
    assert_eq!(batch.key_at(&frame, 2, second + element).unwrap(), "0:2 . 0");
    assert_eq!(batch.key_at(&frame, 2, 3), None);
    assert_eq!(batch.key_at(&frame, 2, 100_000), None);
}
