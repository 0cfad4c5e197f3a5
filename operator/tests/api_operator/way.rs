//! A TCP proxy to the API server that can go silent: connections stay open but carry no more data,
//! as when a machine on the path dies.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use isp_lab::ControlPlane;
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub(crate) struct Way {
    kubeconfig: PathBuf,
    open: watch::Sender<bool>,
    keep_dead: watch::Sender<bool>,
    _directory: tempfile::TempDir,
}

impl Way {
    pub(crate) async fn to(cluster: &ControlPlane) -> Self {
        let mut config: Value =
            serde_json::from_str(&fs::read_to_string(cluster.kubeconfig()).unwrap()).unwrap();
        let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap().to_owned();
        let target: SocketAddr = server.trim_start_matches("https://").parse().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let here = format!("https://{}", listener.local_addr().unwrap());
        config["clusters"][0]["cluster"]["server"] = json!(here);
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = directory.path().join("kubeconfig");
        fs::write(&kubeconfig, config.to_string()).unwrap();
        let open = watch::Sender::new(true);
        let keep_dead = watch::Sender::new(false);
        tokio::spawn(carry(listener, target, open.subscribe(), keep_dead.subscribe()));
        Self { kubeconfig, open, keep_dead, _directory: directory }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) fn go_silent(&self) {
        self.open.send_replace(false);
    }

    /// Makes the open connections dead; new ones work.
    pub(crate) async fn replace_connections(&self) {
        self.go_silent();
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.keep_dead.send_replace(true);
        self.reopen();
    }

    /// Works again; connections that were open are closed.
    pub(crate) fn reopen(&self) {
        self.open.send_replace(true);
    }
}

async fn carry(
    listener: TcpListener,
    target: SocketAddr,
    open: watch::Receiver<bool>,
    keep_dead: watch::Receiver<bool>,
) {
    while let Ok((mut near, _)) = listener.accept().await {
        let (mut open, keep_dead) = (open.clone(), keep_dead.clone());
        tokio::spawn(async move {
            let talk = async {
                let mut far = TcpStream::connect(target).await.unwrap();
                copy_bidirectional(&mut near, &mut far).await
            };
            let mut silence = open.clone();
            tokio::select! {
                _ = talk => return,
                _ = silence.wait_for(|open| !open) => {}
            }
            // `near` stays open but is no longer read.
            let _ = open.wait_for(|open| *open).await;
            if *keep_dead.borrow() {
                std::future::pending::<()>().await;
            }
        });
    }
}
