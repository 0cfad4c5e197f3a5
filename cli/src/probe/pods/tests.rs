use super::*;

#[test]
fn a_later_run_recognizes_every_pod() {
    for pod in [
        target(&KIND.new_name(), "1", "work-1", "image"),
        client(&KIND.new_name(), "work-1", Network::Pod, "image", Vec::new()),
        client(&KIND.new_name(), "work-1", Network::Host, "image", Vec::new()),
    ] {
        assert!(KIND.is_helper(&pod), "{pod:?}");
        let spec = pod.spec.unwrap();
        assert_eq!(spec.node_name.as_deref(), Some("work-1"));
        assert_eq!(spec.automount_service_account_token, Some(false));
        assert_eq!(spec.active_deadline_seconds, Some(480));
        assert!(spec.containers[0].resources.as_ref().unwrap().limits.is_some());
        assert_eq!(spec.tolerations.unwrap()[0].operator.as_deref(), Some("Exists"));
    }
}

#[test]
fn only_the_targets_of_the_same_run_are_selected() {
    let selects = |pod: &Pod| {
        let labels = pod.metadata.labels.as_ref().unwrap();
        selector("1").iter().all(|(key, value)| labels.get(key) == Some(value))
    };
    assert!(selects(&target("isp-probe-a", "1", "n", "i")));
    assert!(!selects(&target("isp-probe-a", "2", "n", "i")));
    assert!(!selects(&client("isp-probe-a", "n", Network::Pod, "i", Vec::new())));
}
