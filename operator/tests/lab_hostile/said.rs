//! The object's conditions.

use isp_api::conditions::find;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::harness::{OBJECT, Scenario, eventually};

/// One of the object's conditions.
pub(crate) async fn condition(scenario: &Scenario, type_: &str) -> Option<Condition> {
    let status = scenario.objects().get(OBJECT).await.unwrap().status.unwrap_or_default();
    find(&status.conditions, type_).cloned()
}

/// Waits until a condition has this status and reason, and returns its message.
pub(crate) async fn wait_for(scenario: &Scenario, type_: &str, status: &str, reason: &str) -> String {
    let mut message = String::new();
    eventually(&format!("{type_} is {status}, {reason}"), async || {
        let found = condition(scenario, type_).await;
        let found = found.filter(|found| found.status == status && found.reason == reason);
        message = found.as_ref().map(|found| found.message.clone()).unwrap_or_default();
        found.is_some()
    })
    .await;
    message
}
