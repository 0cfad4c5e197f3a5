use serde_json::{Value, json};

use super::*;

fn state(status: &Value) -> State {
    State::of(&serde_json::from_value(json!({"metadata": {}, "status": status})).unwrap())
}

#[test]
fn a_helper_is_waited_for_until_it_cannot_succeed_any_more() {
    let container = |state: Value| {
        json!([{
            "name": "read", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state,
        }])
    };
    let waiting = |reason: &str| json!({"waiting": {"reason": reason, "message": "because"}});
    let pending = |reason| json!({"phase": "Pending", "containerStatuses": container(waiting(reason))});
    assert_eq!(state(&json!({})), State::Waiting(String::new()));
    let creating = State::Waiting("ContainerCreating: because".to_owned());
    assert_eq!(state(&pending("ContainerCreating")), creating);
    let stuck = State::Stuck("ImagePullBackOff: because".to_owned());
    assert_eq!(state(&pending("ImagePullBackOff")), stuck);
    assert_eq!(state(&json!({"phase": "Succeeded"})), State::Succeeded);
    let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    assert_eq!(state(&ready), State::Ready);
    let ended = json!({"terminated": {"exitCode": 1, "message": "error: none has the address\n"}});
    let failed = json!({"phase": "Failed", "containerStatuses": container(ended)});
    assert_eq!(state(&failed), State::Failed("none has the address".to_owned()));
    let late = json!({"phase": "Failed", "reason": "DeadlineExceeded"});
    assert_eq!(state(&late), State::Failed("DeadlineExceeded".to_owned()));
}
