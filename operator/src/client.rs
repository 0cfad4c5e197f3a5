//! An API client that counts its requests.

use std::sync::Arc;

use http::Request;
use isp_client::{ClientError, config};
use kube::Client;
use kube::client::{Body, ClientBuilder};
use tower::util::MapRequestLayer;

use crate::metrics::{Call, Metrics};

pub(crate) async fn connect(metrics: Arc<Metrics>) -> Result<Client, ClientError> {
    let count = MapRequestLayer::new(move |request: Request<Body>| {
        metrics.call(&Call::of(&request));
        request
    });
    Ok(ClientBuilder::try_from(config().await?).map_err(Box::new)?.with_layer(&count).build())
}
