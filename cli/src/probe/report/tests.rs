use super::super::table::tests::{cell, expects, node_port, pod, seen, silence};
use super::super::table::{Destination, Observed, Source};
use super::*;

/// The cells that show each kind of line.
pub(crate) fn report(is_local: bool, cells: Vec<Cell>) -> Report {
    Report {
        service: "web/frontend".to_owned(),
        target: TargetKind::Canary,
        port: "TCP 80".to_owned(),
        target_nodes: vec!["edge-1".to_owned()],
        external_traffic_policy: if is_local { "Local" } else { "Cluster" }.to_owned(),
        preserved: !cells.iter().any(|cell| cell.wrong),
        as_expected: !cells.iter().any(|cell| cell.unexpected),
        cells,
        notes: Vec::new(),
    }
}

pub(crate) fn before() -> Report {
    let external = || Destination::External { number: 0 };
    report(
        false,
        vec![
            cell(
                Source::ThisMachine,
                "198.51.100.10",
                external(),
                seen(&["10.244.1.1"]),
                vec![expects(&["10.244.1.1", "10.90.0.11"])],
                false,
            ),
            cell(
                pod(),
                "10.244.2.5",
                external(),
                seen(&["10.90.0.12"]),
                vec![expects(&["10.90.0.12"])],
                false,
            ),
            cell(
                pod(),
                "10.244.2.5",
                node_port("work-2"),
                seen(&["10.90.0.13"]),
                vec![expects(&["10.90.0.13"])],
                false,
            ),
            cell(
                pod(),
                "10.244.2.5",
                Destination::ClusterIp,
                seen(&["10.244.2.5"]),
                vec![expects(&["10.244.2.5"])],
                false,
            ),
        ],
    )
}

pub(crate) fn after() -> Report {
    let external = || Destination::External { number: 0 };
    let silent = Observed::Silent("timed out".to_owned());
    report(
        true,
        vec![
            cell(
                Source::ThisMachine,
                "198.51.100.10",
                external(),
                seen(&["198.51.100.10"]),
                vec![expects(&["198.51.100.10"])],
                true,
            ),
            cell(
                pod(),
                "10.244.2.9",
                external(),
                seen(&["10.90.0.12"]),
                vec![expects(&["10.90.0.12"])],
                true,
            ),
            cell(pod(), "10.244.2.9", node_port("work-2"), silent, vec![silence()], true),
            cell(
                pod(),
                "10.244.2.9",
                Destination::ClusterIp,
                seen(&["10.244.2.9"]),
                vec![expects(&["10.244.2.9"])],
                true,
            ),
        ],
    )
}

#[test]
fn the_table_shows_observed_beside_expected() {
    assert_eq!(
        text(&before(), None),
        "\
web/frontend: a canary of the same shape, TCP 80, externalTrafficPolicy Cluster, target on edge-1
  source         source IP      destination                      target saw    expected    changed by
  this machine   198.51.100.10  external 10.96.7.7:80            10.244.1.1 !  10.244.1.1  SNAT on node edge-1
  pod on work-1  10.244.2.5     external 10.96.7.7:80            10.90.0.12    10.90.0.12  SNAT on node work-1
  pod on work-1  10.244.2.5     NodePort of work-2 10.96.7.7:80  10.90.0.13 !  10.90.0.13  SNAT on node work-2
  pod on work-1  10.244.2.5     ClusterIP 10.96.7.7:80           10.244.2.5    10.244.2.5
web/frontend: source IP lost in 2 of 4 cells, marked with !; every cell is as expected
"
    );
    let after = text(&after(), None);
    assert!(after.contains("no answer, as intended  no answer"), "{after}");
    assert!(
        after.ends_with("web/frontend: source IP preserved in all 4 cells; every cell is as expected\n"),
        "{after}"
    );
}

#[test]
fn cells_that_do_not_tell_the_source_do_not_count_as_preserved() {
    let reached = cell(
        pod(),
        "10.244.2.5",
        Destination::ClusterIp,
        Observed::Reached,
        vec![expects(&["10.244.2.5"])],
        true,
    );
    let text = text(&report(true, vec![reached]), None);
    assert!(
        text.ends_with(
            "no loss was seen, but 1 of 1 cells do not tell the source IP; every cell is as expected\n"
        ),
        "{text}"
    );
}

#[test]
fn a_surprise_is_told_and_a_hostile_name_does_no_harm() {
    let silent = Observed::Silent("timed out".to_owned());
    let to = Destination::External { number: 1 };
    let mut report =
        report(true, vec![cell(pod(), "10.244.2.5", to, silent, vec![expects(&["10.90.0.12"])], true)]);
    report.notes.push("a note with \x1b[31m colours".to_owned());
    let text = text(&report, Some(80));
    assert!(
        text.contains("external 2 10.96.7.7:80  no answer (timed out) !  UNEXPECTED, not 10.90.0.12"),
        "{text}"
    );
    assert!(text.contains("; 1 not as expected"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn a_report_is_json_that_is_read_again() {
    for report in [before(), after()] {
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    }
    let json = serde_json::to_value(before()).unwrap();
    assert_eq!(
        json["cells"][2],
        serde_json::json!({
            "from": {"kind": "pod", "node": "work-1"}, "own": "10.244.2.5",
            "to": {"kind": "node-port", "node": "work-2"}, "address": "10.96.7.7:80",
            "observed": {"seen": [{"source": "10.90.0.13", "whose": {"node": "work-2"}, "targetNode": "edge-1"}]},
            "expected": [{"seen": {"sources": ["10.90.0.13"]}}],
            "wrong": true, "unexpected": false, "changedBy": "SNAT on node work-2",
        })
    );
}
