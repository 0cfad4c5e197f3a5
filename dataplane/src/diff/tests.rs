use super::*;
use crate::nft::{Data, Handle, Value};

fn element(set: Name, index: u32, data: u32) -> Element {
    Element {
        set,
        key: vec![Value::Handle(Handle(1)), Value::Index(index)],
        last: None,
        data: Data::Values(vec![Value::Handle(Handle(data))]),
    }
}

#[test]
fn equal_elements_need_no_step() {
    let all = || vec![element(layout::ENDPOINTS, 0, 7), element(layout::SIZES, 0, 7)];
    assert_eq!(diff(all(), all().into_iter().rev().collect()), Changes::default());
}

#[test]
fn a_replaced_element_is_deleted_before_it_is_added() {
    let (old, new) = (element(layout::ENDPOINTS, 0, 7), element(layout::ENDPOINTS, 0, 8));
    let changes = diff(vec![old.clone()], vec![new.clone()]);
    assert_eq!(changes.now, [Operation::DeleteElement(old), Operation::AddElement(new)]);
    assert_eq!(changes.later, []);
}

#[test]
fn a_frontend_is_deleted_at_once_and_an_endpoint_later() {
    let (frontend, endpoint) = (element(layout::CLUSTER_IPS, 0, 7), element(layout::ENDPOINTS, 0, 7));
    let changes = diff(vec![frontend.clone(), endpoint.clone()], Vec::new());
    assert_eq!(changes.now, [Operation::DeleteElement(frontend)]);
    assert_eq!(changes.later, [endpoint]);
}

#[test]
fn a_range_with_the_same_beginning_is_replaced() {
    let range = |last| Element {
        last: Some(vec![Value::Handle(Handle(1)), Value::Index(last)]),
        data: Data::None,
        ..element(layout::ALLOWED, 0, 0)
    };
    let changes = diff(vec![range(9)], vec![range(5)]);
    assert_eq!(changes.now, [Operation::DeleteElement(range(9)), Operation::AddElement(range(5))]);
}
