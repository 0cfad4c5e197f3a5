//! The table of a Service.

use super::World;
use crate::{Impossible, Key, Outcome, Source, Target, cells, cells_among};

#[test]
fn a_table_has_every_source_and_every_address() {
    let world = World::web_on("Local", &["edge-1"]);
    let key = Key::new("shop", "web");
    let all = cells(&world.cluster, &key).unwrap();
    let count = |target: fn(&Target) -> bool| all.iter().filter(|cell| target(&cell.target)).count();
    // A pod and the host of each node, in two families; a client outside, except to the ClusterIP.
    assert_eq!(count(|target| *target == Target::ClusterIp), 6 * 2);
    assert_eq!(count(|target| matches!(target, Target::NodePort(_))), 7 * 3 * 2);
    assert_eq!(count(|target| *target == Target::External), 7 * 3);
    for cell in &all {
        let paths = cell.expected(&world.cluster).unwrap();
        assert!(!paths.is_empty(), "{cell:?}");
        let is_unclear = paths.iter().any(|path| matches!(path.outcome, Outcome::Unclear { .. }));
        assert!(!is_unclear, "{cell:?}: {paths:#?}");
    }
    let some = cells_among(&world.cluster, &key, &["edge-1"]).unwrap();
    assert!(some.iter().all(|cell| cell.request.source != Source::Node("work-1".to_owned())));
    let none = Key::new("shop", "none");
    assert_eq!(cells(&world.cluster, &none), Err(Impossible::NoService(none)));
}
