//! Creates, changes and deletes Services and endpoints all the time, even while the API server is
//! down.

mod shape;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};

use self::shape::{Addresses, Changed, Shape};
use crate::random::Random;

const PATIENCE: Duration = Duration::from_secs(10);
/// How many Services are created concurrently at the beginning.
const TOGETHER: usize = 12;

/// Retries until the API server answers. It may be down, or may have executed a request without
/// answering.
pub async fn insist<T>(ask: impl AsyncFn() -> kube::Result<T>) -> kube::Result<T> {
    loop {
        match tokio::time::timeout(PATIENCE, ask()).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(kube::Error::Api(status))) if status.code < 500 && status.code != 429 => {
                return Err(kube::Error::Api(status));
            }
            Ok(Err(_)) | Err(_) => tokio::time::sleep(Duration::from_millis(300)).await,
        }
    }
}

/// Returns `None` for the error that means that the API server had executed the write before.
fn unless<T>(code: u16, result: kube::Result<T>) -> Option<T> {
    match result {
        Ok(answer) => Some(answer),
        Err(kube::Error::Api(status)) if status.code == code => None,
        Err(error) => panic!("{error}"),
    }
}

/// The key and value of a label.
pub type Label = (&'static str, &'static str);

/// What the Services are about.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The node that some of the endpoints are on.
    pub node: &'static str,
    /// The labels of the objects that Services may have.
    pub labels: &'static [Label],
}

/// Services that change in the namespace `default`.
pub struct Churn {
    setting: Setting,
    services: Api<Service>,
    slices: Api<EndpointSlice>,
    random: Random,
    addresses: Addresses,
    shapes: Vec<Shape>,
    size: usize,
    made: usize,
    /// How often each action was done.
    pub operations: BTreeMap<String, usize>,
}

impl Churn {
    /// No Service exists yet.
    pub fn new(client: &Client, setting: Setting, random: Random) -> Self {
        Self {
            setting,
            services: Api::namespaced(client.clone(), "default"),
            slices: Api::namespaced(client.clone(), "default"),
            random,
            addresses: Addresses::default(),
            shapes: Vec::new(),
            size: 0,
            made: 0,
            operations: BTreeMap::new(),
        }
    }

    /// Creates the initial Services.
    pub async fn populate(&mut self, size: usize) {
        self.size = size;
        while self.shapes.len() < size {
            let shape = self.imagine();
            self.shapes.push(shape);
        }
        let writes = self.shapes.iter().map(|shape| self.create(shape));
        stream::iter(writes).buffer_unordered(TOGETHER).collect::<Vec<_>>().await;
    }

    /// Creates a Service that the churn does not change, and returns it.
    pub async fn add_steady(&mut self, name: &str, label: Option<Label>) -> Service {
        let shape = Shape::steady(name.to_owned(), self.setting, label, &mut self.addresses);
        self.create(&shape).await;
        insist(async || self.services.get(name).await).await.unwrap()
    }

    /// Makes one change after the other.
    pub async fn run(&mut self, stop: &Cell<bool>) {
        while !stop.get() {
            let what = self.step().await;
            *self.operations.entry(what).or_default() += 1;
            tokio::time::sleep(self.random.pause(200)).await;
        }
    }

    async fn step(&mut self) -> String {
        let (few, many) = (self.size - self.size / 20, self.size + self.size / 20);
        match (self.random.below(100), self.shapes.len()) {
            (0..10, count) if count < many => {
                let shape = self.imagine();
                self.create(&shape).await;
                self.shapes.push(shape);
                "create".to_owned()
            }
            (10..20, count) if count > few => {
                let shape = self.shapes.swap_remove(self.random.below(count));
                self.delete(&shape.name).await;
                "delete".to_owned()
            }
            (_, count) => {
                let position = self.random.below(count);
                let shape = &mut self.shapes[position];
                let changed = shape.change(&mut self.random, &mut self.addresses);
                self.write(position, changed).await;
                format!("{changed:?}").to_lowercase()
            }
        }
    }

    fn imagine(&mut self) -> Shape {
        self.made += 1;
        Shape::random(self.made, self.setting, &mut self.random, &mut self.addresses)
    }

    async fn create(&self, shape: &Shape) {
        let post = PostParams::default();
        let service = shape.service();
        unless(409, insist(async || self.services.create(&post, &service).await).await);
        let slice = shape.slice();
        unless(409, insist(async || self.slices.create(&post, &slice).await).await);
        if shape.has_status() {
            self.write_part(shape, Changed::LoadBalancer).await;
        }
    }

    async fn delete(&self, name: &str) {
        let now = DeleteParams::default();
        unless(404, insist(async || self.slices.delete(name, &now).await).await);
        unless(404, insist(async || self.services.delete(name, &now).await).await);
    }

    async fn write(&self, position: usize, part: Changed) {
        self.write_part(&self.shapes[position], part).await;
    }

    async fn write_part(&self, shape: &Shape, part: Changed) {
        let (name, merge) = (&shape.name, PatchParams::default());
        let patch = Patch::Merge(shape.patch(part));
        let (services, slices) = (&self.services, &self.slices);
        match part {
            Changed::Endpoints => {
                insist(async || slices.patch(name, &merge, &patch).await).await.unwrap();
            }
            Changed::LoadBalancer => {
                insist(async || services.patch_status(name, &merge, &patch).await).await.unwrap();
            }
            _ => {
                insist(async || services.patch(name, &merge, &patch).await).await.unwrap();
            }
        }
    }
}
