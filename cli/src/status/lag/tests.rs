use super::*;

fn acknowledged(view: View, generation: i64) -> AcknowledgedView {
    AcknowledgedView {
        object: "web".to_owned(),
        uid: "uid-web".to_owned(),
        generation,
        view,
        relisted: true,
        programmed: Some(true),
    }
}

#[test]
fn a_node_that_acknowledged_the_generation_with_another_view_is_behind() {
    let shows_everything = acknowledged(View::Full, 2);
    assert_eq!(
        lag(Some(&shows_everything), View::ClusterOnly, 2).as_deref(),
        Some("the node has view Full, not ClusterOnly")
    );
    let hides = acknowledged(View::Hidden, 2);
    assert_eq!(lag(Some(&hides), View::Full, 2).as_deref(), Some("the node has view Hidden, not Full"));
    assert_eq!(lag(Some(&hides), View::Hidden, 2), None);
}

#[test]
fn an_ingress_node_that_shows_everything_owes_nothing() {
    let mut old = acknowledged(View::Full, 1);
    (old.relisted, old.programmed) = (false, Some(false));
    assert_eq!(lag(Some(&old), View::Full, 2), None);
    assert_eq!(lag(None, View::Full, 2), None);
    assert!(lag(None, View::Hidden, 2).is_some());
}
