//! Forecasts for objects of mode Beside.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

fn beside() -> IngressSourcePreserve {
    object("web", json!({"mode": "Beside"}))
}

#[test]
fn a_new_object_moves_no_node_and_takes_its_service_over_last() {
    let told = applied(cluster(9), vec![beside()]);
    assert_eq!(
        render(&told),
        "\
web would be created
  1  add finalizer sourcepreserve.io/restore to IngressSourcePreserve web
  2  create ServiceAccount kube-system/proxy-agent
     create ClusterRole sourcepreserve-proxy-agent
     create ClusterRoleBindings sourcepreserve-node-proxier, sourcepreserve-proxy-agent
     create ValidatingAdmissionPolicy sourcepreserve-agent-own-node
     create ValidatingAdmissionPolicyBinding sourcepreserve-agent-own-node
  3  create DaemonSet kube-system/proxy-agent-beside (image agent:1), which runs on every node
  4  set label sourcepreserve.io/preserve=web on Service web/frontend
  5  set label service.kubernetes.io/service-proxy-name=ingress-source-preserve on Service web/frontend: every kube-proxy skips it, and the agents serve it
  6  set externalTrafficPolicy=Local on Service web/frontend (was Cluster)
Actions with the same step number run in any order.
web becomes Ready: the source IP reaches 1 Service
     view of its Services on nodes work-01, work-02 and 7 more: Full -> ClusterOnly
"
    );
    assert!(told.ready());
    assert!(
        include_str!("../../../../../docs/kubectl-isp.md").contains(&render(&told)),
        "the manual shows it"
    );
    let narrow = wrap_lines(&render(&told), Some(80), INDENT);
    // The label and its value are one word.
    let long = |line: &&str| line.len() > 80 && !line.contains("service-proxy-name=");
    assert_eq!(narrow.lines().filter(long).collect::<Vec<_>>(), [""; 0], "{narrow}");
    let mut without_kube_proxy = cluster(9);
    without_kube_proxy.daemon_sets.clear();
    assert_eq!(render(&applied(without_kube_proxy, vec![beside()])), render(&told));
}

#[test]
fn a_change_of_the_mode_is_planned_in_both_directions() {
    let filter = || object("web", json!({}));
    let told = applied(settled(cluster(1), vec![filter()]), vec![beside()]);
    assert_eq!(
        render(&told),
        "\
web would be changed
  1  create DaemonSet kube-system/proxy-agent-beside (image agent:1), which runs on every node
  2  set label service.kubernetes.io/service-proxy-name=ingress-source-preserve on Service web/frontend: every kube-proxy skips it, and the agents serve it
  3  move node work-01 back to the cluster's kube-proxy
  4  wait until the cluster's kube-proxy serves node work-01, then record that the move is complete
     delete IngressSourceNode work-01
     delete DaemonSet kube-system/proxy-agent-default
     remove the operator's node affinity and annotation from DaemonSet kube-system/kube-proxy
Actions with the same step number run in any order.
web becomes Ready: the source IP reaches 1 Service
"
    );
    let told = applied(settled(cluster(1), vec![beside()]), vec![filter()]);
    assert_eq!(
        render(&told),
        "\
web would be changed
  1  create DaemonSet kube-system/proxy-agent-default (image agent:1)
     create DaemonSet kube-system/proxy-agent-images-default (pulls image agent:1)
  2  add node affinity to DaemonSet kube-system/kube-proxy: sourcepreserve.io/agent-pool DoesNotExist
  3  pull the agent's images on node work-01
  4  move node work-01 to the agent of pool default
  5  wait until the agent serves node work-01, then record that the move is complete
     delete DaemonSet kube-system/proxy-agent-images-default
  6  remove label service.kubernetes.io/service-proxy-name from Service web/frontend: every kube-proxy serves it again
     wait 31 s
  7  record that every kube-proxy serves Service web/frontend again
  8  delete DaemonSet kube-system/proxy-agent-beside
  9  delete IngressSourceNodes edge-1.beside, work-01.beside
Actions with the same step number run in any order.
web becomes Ready: the source IP reaches 1 Service
"
    );
}

#[test]
fn a_deletion_gives_the_service_back_and_waits_before_the_agents_go() {
    let mut going = settled(cluster(1), vec![beside()]);
    let object = going.objects.get_mut("web").unwrap();
    object.metadata.deletion_timestamp = Some(Time(NOW.parse().unwrap()));
    let told = render(&applied(going, vec![beside()]));
    let pending = " (pending without the file, too)";
    let expected = format!(
        "
  1  set externalTrafficPolicy=Cluster on Service web/frontend as field manager kubectl-create{pending}
  2  remove label service.kubernetes.io/service-proxy-name from Service web/frontend: every kube-proxy serves it again{pending}
     wait 31 s
  3  remove the operator's label and annotation from Service web/frontend{pending}
  4  delete DaemonSet kube-system/proxy-agent-beside{pending}
  5  delete IngressSourceNodes edge-1.beside, work-01.beside{pending}
"
    );
    assert!(told.contains(&expected), "{told}");
}

#[test]
fn a_service_of_another_proxy_is_a_conflict() {
    let mut taken = cluster(1);
    let service = taken.services.get_mut(&Key::new("web", "frontend")).unwrap();
    service.labels.insert("service.kubernetes.io/service-proxy-name".to_owned(), "other".to_owned());
    let told = applied(taken, vec![object("web", json!({"mode": "Beside", "conflictPolicy": "Force"}))]);
    assert!(!told.ready());
    let text = render(&told);
    assert!(text.contains("web does not become Ready: Conflict: Service web/frontend: "), "{text}");
    assert!(text.contains("leaves it to another proxy, which mode Beside never replaces"), "{text}");
}
