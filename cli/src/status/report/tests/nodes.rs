//! The nodes of a report, and its layout.

use super::*;

/// A rollout that has just begun, the reports of its agents, and the nodes.
fn rollout() -> (IngressSourcePreserve, Vec<IngressSourceNode>, Nodes) {
    let rolling = "1 of 8 non-ingress nodes have their agent";
    let extra = [
        ("Ready", false, "RollingOut", rolling),
        ("Progressing", true, "RollingOut", rolling),
        ("Degraded", false, "None", "no problem found"),
        ("Conflict", false, "None", "no conflict found"),
    ];
    let more = json!({
        "services": [{
            "namespace": "web", "name": "frontend", "state": "Waiting", "ingressEndpoints": 1,
            "message": "waits until every non-ingress node has acknowledged",
        }],
        "nodePools": [pool("default", [7, 6, 1, 0]), pool("gpu", [1, 0, 0, 0])],
    });
    let web = stands("web", "Progressing", 1, &extra, more);
    let mut ingress_of_web = seen(1, false, None);
    ingress_of_web[0]["view"] = json!("Full");
    let mut was_ingress = seen(2, true, Some(true));
    was_ingress[0]["view"] = json!("Full");
    let mut of_another_pool = agent_report("work-9", true, &seen(2, true, Some(true)));
    if let Some(status) = &mut of_another_pool.status {
        status.pool = "old".to_owned();
    }
    let reports = vec![
        agent_report("edge-9", true, &ingress_of_web),
        agent_report("work-1", true, &seen(2, true, Some(true))),
        agent_report("work-2", true, &seen(1, true, Some(true))),
        agent_report("work-3", true, &seen(2, false, None)),
        agent_report("work-4", true, &seen(2, true, Some(false))),
        agent_report("work-5", false, &seen(2, true, Some(true))),
        agent_report("work-6", true, &was_ingress),
        agent_report("work-7", true, &json!([])),
        of_another_pool,
    ];
    let names = ["1", "2", "3", "4", "5", "6", "7", "9"].map(|number| format!("work-{number}"));
    let ingress = ("edge-9", &[("node-role.kubernetes.io/ingress", "")][..], false);
    let known: Vec<_> = names.iter().map(|name| (name.as_str(), &[][..], false)).chain([ingress]).collect();
    let nodes = nodes(&known);
    (web, reports, nodes)
}

#[test]
fn a_rollout_names_what_it_waits_for_and_the_nodes_that_are_behind() {
    let (web, reports, nodes) = rollout();
    let text = with_context(&web, &context(&reports, &nodes));
    assert_eq!(text, "\
NAME  PHASE        READY  CHECKED  AGENTS  LABELS  ACKS  LOCAL  AGE
web   Progressing  ✖      ✔        ✖       ✖       ✖     ✖      2d3h

web: Progressing for 3h5m
  services   web/frontend  Waiting, no external address, 1 endpoint on ingress nodes: waits until every non-ingress node has acknowledged
  nodes      pool default: 7 nodes, 6 have an agent, 1 ready
               work-2: the agent works with generation 1 of the object, not 2
               work-3: kube-proxy has not listed its Services again yet
               work-4: kube-proxy has not updated the kernel's rules yet
               work-5: kube-proxy is not connected to the agent
               work-6: the node has view Full, not ClusterOnly
               and 1 more (-o wide shows all)
             pool gpu: 1 node, 0 have an agent, 0 ready
             in no pool of this object:
               work-9: has an agent of pool old
  waiting    3h5m for AgentsReady: 1 of 8 non-ingress nodes have their agent
");
    assert!(!is_ready(&web));
    assert!(MANUAL.contains(&text), "the manual shows it");
}

#[test]
fn a_report_fits_the_terminal_and_a_locale_without_utf8() {
    let (web, reports, nodes) = rollout();
    let narrow = Context { width: Some(80), symbols: Symbols::Ascii, ..context(&reports, &nodes) };
    let text = with_context(&web, &narrow);
    assert!(text.is_ascii(), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert!(
        text.starts_with(
            "\
NAME  PHASE        READY  CHECKED  AGENTS  LABELS  ACKS  LOCAL  AGE
web   Progressing  no     ok       no      no      no    no     2d3h

web: Progressing for 3h5m
  services   web/frontend  Waiting, no external address, 1 endpoint on ingress
               nodes: waits until every non-ingress node has acknowledged
"
        ),
        "{text}"
    );
    let wide = with_context(&web, &Context { width: Some(140), ..context(&reports, &nodes) });
    assert!(wide.lines().all(|line| line.chars().count() <= 140), "{wide}");
    let mut long = web;
    long.metadata.name = Some("a-name-of-16-chr".to_owned());
    let table = with_context(&long, &narrow);
    assert!(table.lines().take(2).all(|line| line.len() <= 80), "{table}");
}

#[test]
fn the_wanted_view_follows_from_the_status_where_nodes_may_not_be_listed() {
    let (mut web, reports, _) = rollout();
    assert!(told(&web, &reports).contains("edge-9: the agent works with generation 1"));
    let status = web.status.as_mut().unwrap();
    status.ingress_nodes = Some(vec!["edge-9".to_owned()]);
    let text = told(&web, &reports);
    assert!(!text.contains("edge-9"), "{text}");
    assert!(text.contains("work-6: the node has view Full, not ClusterOnly"), "{text}");
}

#[test]
fn an_ingress_node_whose_agent_still_hides_the_services_is_shown() {
    let reports = [agent_report("edge-1", true, &seen(2, true, Some(true)))];
    let nodes = nodes(&[("edge-1", &[("node-role.kubernetes.io/ingress", "")], false)]);
    let text = block(&ready("web"), &reports, &nodes);
    assert!(text.contains("               edge-1: the node has view ClusterOnly, not Full\n"), "{text}");
}

#[test]
fn agents_of_other_objects_are_no_strays_and_reports_of_deleted_nodes_are_named() {
    let waiting = [("Ready", false, "NoIngressEndpoint", "no endpoint")];
    let pending = stands("web", "Pending", 0, &waiting, json!({}));
    let reports = [agent_report("work-1", true, &seen(2, true, Some(true)))];
    let there = nodes(&[("work-1", &[], false)]);
    assert!(!block(&pending, &reports, &there).contains("work-1"), "pool default is in the spec");
    let text = block(&ready("web"), &reports, &nodes(&[]));
    assert!(text.contains("work-1: the node no longer exists, and its report is left\n"), "{text}");
}
