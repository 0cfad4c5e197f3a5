//! Lists, read page by page, so that only one page of full objects is in memory.

use std::fmt::Debug;

use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject, ObjectList, PartialObjectMeta};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use crate::connection::Connection;
use crate::error::CommandError;
use crate::progress;

const PAGE: u32 = 100;

/// The name of a resource as in RBAC rules: `services`, `daemonsets.apps`.
pub(crate) fn resource<K: Resource<DynamicType = ()>>() -> String {
    name(&K::plural(&()), &K::group(&()))
}

fn name(plural: &str, group: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

/// Calls `take` for every object of a kind.
pub(crate) async fn each<K>(
    connection: &Connection,
    api: Api<K>,
    wanted: ListParams,
    take: impl FnMut(K),
) -> Result<(), CommandError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let resource = resource::<K>();
    let pages = pages(&resource, wanted, async |page| api.list(&page).await, take).await;
    pages.map_err(|error| connection.problem("list", &resource, error))
}

/// The same for a kind that is known only at run time.
pub(crate) async fn each_of(
    connection: &Connection,
    kind: &ApiResource,
    wanted: ListParams,
    take: impl FnMut(DynamicObject),
) -> Result<(), CommandError> {
    let api: Api<DynamicObject> = Api::all_with(connection.client.clone(), kind);
    let resource = name(&kind.plural, &kind.group);
    let pages = pages(&resource, wanted, async |page| api.list(&page).await, take).await;
    pages.map_err(|error| connection.problem("list", &resource, error))
}

/// The same with `metadata` only.
pub(crate) async fn each_metadata<K>(
    connection: &Connection,
    api: Api<K>,
    take: impl FnMut(PartialObjectMeta<K>),
) -> Result<(), CommandError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let resource = resource::<K>();
    let everything = ListParams::default();
    let pages = pages(&resource, everything, async |page| api.list_metadata(&page).await, take).await;
    pages.map_err(|error| connection.problem("list", &resource, error))
}

async fn pages<T: Clone>(
    resource: &str,
    wanted: ListParams,
    list: impl AsyncFn(ListParams) -> Result<ObjectList<T>, kube::Error>,
    mut take: impl FnMut(T),
) -> Result<(), kube::Error> {
    let mut page = wanted.limit(PAGE);
    let mut number = 0;
    loop {
        progress::reading(resource, number);
        let ObjectList { metadata, items, .. } = list(page.clone()).await?;
        number += items.len();
        items.into_iter().for_each(&mut take);
        match metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page.continue_token = Some(token),
            None => return Ok(()),
        }
    }
}

/// All objects of a kind.
pub(crate) async fn all<K>(
    connection: &Connection,
    api: Api<K>,
    wanted: ListParams,
) -> Result<Vec<K>, CommandError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let mut found = Vec::new();
    each(connection, api, wanted, |object| found.push(object)).await?;
    Ok(found)
}
