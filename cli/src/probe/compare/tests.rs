use super::super::report::tests::{after, before};
use super::*;

#[test]
fn the_difference_is_told_by_whose_address_arrived() {
    assert_eq!(
        differences(&before(), &after()),
        [
            "this machine to external             an IP of node edge-1 !  ->  its own IP",
            "pod on work-1 to NodePort of work-2  an IP of node work-2 !  ->  no answer",
        ]
    );
}

#[test]
fn the_same_run_with_other_pods_has_no_difference() {
    let mut other = after();
    for cell in &mut other.cells {
        cell.address.set_port(8080);
    }
    assert_eq!(differences(&after(), &other), [""; 0]);
    assert_eq!(text(&[]), "No cell has changed since the saved run.\n");
}

#[test]
fn cells_that_only_one_run_has_are_named() {
    let mut fewer = after();
    fewer.cells.remove(0);
    assert_eq!(differences(&after(), &fewer), ["this machine to external  its own IP  ->  not asked"]);
    assert_eq!(differences(&fewer, &after()), ["this machine to external  not asked  ->  its own IP"]);
}
