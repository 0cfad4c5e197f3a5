//! Writes objects straight into etcd, for clusters of tens of thousands of Services. Through the
//! API server each new Service takes longer than the one before, because the server counts all
//! their addresses for its metrics: 50,000 would take an hour.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use super::{ControlPlane, ControlPlaneError};

/// The most objects of one transaction; etcd's limit is 128.
const AT_ONCE: usize = 120;

/// An object, and its place in etcd.
#[derive(Debug, Clone)]
pub struct StoredObject {
    /// The path below the API server's prefix, such as `services/specs/default/web`.
    pub path: String,
    /// The complete object, as the API server stores it: with its UID and all defaults.
    pub object: Value,
}

impl ControlPlane {
    /// Writes objects into etcd. Nothing validates them, and nothing is allocated for them.
    pub async fn store(&self, objects: &[StoredObject]) -> Result<(), ControlPlaneError> {
        let client = self.etcd_client().await?;
        for some in objects.chunks(AT_ONCE) {
            let puts: Vec<Value> = some.iter().map(put).collect();
            let body = json!({"success": puts}).to_string().into_bytes();
            let request = http::Request::post("/v3/kv/txn")
                .body(body)
                .map_err(|error| Box::new(kube::Error::HttpError(error)))?;
            client.request_text(request).await.map_err(Box::new)?;
        }
        Ok(())
    }

    /// A client of etcd's HTTP gateway. etcd accepts the API server's certificate.
    async fn etcd_client(&self) -> Result<Client, ControlPlaneError> {
        let file = |name: &str| self.credentials().file(name);
        let kubeconfig = json!({
            "clusters": [{"name": "etcd", "cluster": {"server": self.etcd, "certificate-authority": file("etcd-ca.crt")}}],
            "users": [{"name": "etcd", "user": {
                "client-certificate": file("etcd-client.crt"), "client-key": file("etcd-client.key"),
            }}],
            "contexts": [{"name": "etcd", "context": {"cluster": "etcd", "user": "etcd"}}],
            "current-context": "etcd",
        });
        let kubeconfig = Kubeconfig::from_yaml(&kubeconfig.to_string()).map_err(Box::new)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        Ok(Client::try_from(config.map_err(Box::new)?).map_err(Box::new)?)
    }
}

fn put(stored: &StoredObject) -> Value {
    let encode = |text: String| BASE64_STANDARD.encode(text);
    let key = encode(format!("/registry/{}", stored.path));
    json!({"requestPut": {"key": key, "value": encode(stored.object.to_string())}})
}
