//! Whether the user has the rights that helper pods take. The API server is asked before anything
//! is created.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::HelperError;
use crate::connection::Connection;
use crate::error::CommandError;
use crate::read;

/// A verb and a resource, as `kubectl auth can-i` takes them: `pods`, `pods/log`.
pub(crate) type Right = (&'static str, &'static str);

/// What running a pod and reading its output takes.
pub(crate) const RUN_PODS: [Right; 5] =
    [("create", "pods"), ("get", "pods"), ("list", "pods"), ("delete", "pods"), ("get", "pods/log")];

/// What rights are for, and what to do without them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// The beginning of a sentence, such as `reading rules takes a helper pod`.
    pub(crate) purpose: &'static str,
    pub(crate) way_out: &'static str,
}

/// Fails with the first right that the user does not have in this namespace.
pub(crate) async fn check(
    connection: &Connection,
    namespace: &str,
    rights: &[Right],
    need: Need,
) -> Result<(), CommandError> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(connection.client.clone());
    for &(verb, resource) in rights {
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes(namespace, verb, resource)),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let answer = reviews.create(&PostParams::default(), &review).await.map_err(|error| {
            connection.problem("create", &read::resource::<SelfSubjectAccessReview>(), error)
        })?;
        if !answer.status.is_some_and(|status| status.allowed) {
            let (namespace, Need { purpose, way_out }) = (namespace.to_owned(), need);
            return Err(HelperError::NoRight { purpose, verb, resource, namespace, way_out }.into());
        }
    }
    Ok(())
}

fn attributes(namespace: &str, verb: &str, resource: &str) -> ResourceAttributes {
    let (resource, subresource) =
        resource.split_once('/').map_or((resource, None), |(resource, sub)| (resource, Some(sub)));
    let (resource, group) =
        resource.split_once('.').map_or((resource, None), |(resource, group)| (resource, Some(group)));
    ResourceAttributes {
        namespace: Some(namespace.to_owned()),
        verb: Some(verb.to_owned()),
        group: group.map(str::to_owned),
        resource: Some(resource.to_owned()),
        subresource: subresource.map(str::to_owned),
        ..ResourceAttributes::default()
    }
}

#[test]
fn a_resource_is_named_as_on_the_command_line() {
    let asked = |resource| {
        let asked = attributes("web", "get", resource);
        (asked.group, asked.resource.unwrap(), asked.subresource)
    };
    assert_eq!(asked("pods"), (None, "pods".to_owned(), None));
    assert_eq!(asked("pods/log"), (None, "pods".to_owned(), Some("log".to_owned())));
    let group = Some("discovery.k8s.io".to_owned());
    assert_eq!(asked("endpointslices.discovery.k8s.io"), (group, "endpointslices".to_owned(), None));
}
