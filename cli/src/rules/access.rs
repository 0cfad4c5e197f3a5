//! Whether the user may run a helper pod. The API server is asked before anything is created.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::RulesError;
use crate::connection::Connection;
use crate::error::CommandError;
use crate::read;

/// Verb, resource and subresource.
const RIGHTS: [(&str, &str, Option<&str>); 5] = [
    ("create", "pods", None),
    ("get", "pods", None),
    ("list", "pods", None),
    ("delete", "pods", None),
    ("get", "pods/log", Some("log")),
];

pub(super) async fn check(connection: &Connection, namespace: &str) -> Result<(), CommandError> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(connection.client.clone());
    for (verb, resource, subresource) in RIGHTS {
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(namespace.to_owned()),
                    verb: Some(verb.to_owned()),
                    resource: Some("pods".to_owned()),
                    subresource: subresource.map(str::to_owned),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let answer = reviews.create(&PostParams::default(), &review).await.map_err(|error| {
            connection.problem("create", &read::resource::<SelfSubjectAccessReview>(), error)
        })?;
        if !answer.status.is_some_and(|status| status.allowed) {
            let namespace = namespace.to_owned();
            return Err(RulesError::NoRight { verb, resource, namespace }.into());
        }
    }
    Ok(())
}
