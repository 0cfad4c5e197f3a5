use super::*;

fn acknowledged(view: View, generation: i64) -> AcknowledgedView {
    AcknowledgedView {
        object: "web".to_owned(),
        uid: "uid-web".to_owned(),
        generation,
        view,
        received: true,
        services: Vec::new(),
        programmed: Some(true),
    }
}

fn wanted(mode: Mode, view: View) -> Wanted {
    Wanted { mode, view, generation: 2 }
}

#[test]
fn a_node_that_acknowledged_the_generation_with_another_view_is_behind() {
    let filter = |view| wanted(Mode::Filter, view);
    let shows_everything = acknowledged(View::Full, 2);
    assert_eq!(
        filter(View::ClusterOnly).lag(Some(&shows_everything)).as_deref(),
        Some("the node has view Full, not ClusterOnly")
    );
    let hides = acknowledged(View::Hidden, 2);
    assert_eq!(filter(View::Full).lag(Some(&hides)).as_deref(), Some("the node has view Hidden, not Full"));
    assert_eq!(filter(View::Hidden).lag(Some(&hides)), None);
}

#[test]
fn an_ingress_node_that_shows_everything_owes_nothing() {
    let mut old = acknowledged(View::Full, 1);
    (old.received, old.programmed) = (false, Some(false));
    let full = wanted(Mode::Filter, View::Full);
    assert_eq!(full.lag(Some(&old)), None);
    assert_eq!(full.lag(None), None);
    assert!(wanted(Mode::Filter, View::Hidden).lag(None).is_some());
}

#[test]
fn in_mode_beside_every_node_owes_an_acknowledgement() {
    for view in [View::Full, View::ClusterOnly, View::Hidden] {
        let wanted = wanted(Mode::Beside, view);
        let mut current = acknowledged(view, 2);
        assert_eq!(wanted.lag(Some(&current)), None);
        assert_eq!(wanted.lag(None).as_deref(), Some("the agent has not read the object yet"));
        let old = acknowledged(view, 1);
        let said = "the agent works with generation 1 of the object, not 2";
        assert_eq!(wanted.lag(Some(&old)).as_deref(), Some(said));
        current.programmed = Some(false);
        let said = "the agent has not committed its rules to the kernel yet";
        assert_eq!(wanted.lag(Some(&current)).as_deref(), Some(said));
        current.received = false;
        assert_eq!(wanted.lag(Some(&current)).as_deref(), Some("the agent does not have the view yet"));
    }
}
