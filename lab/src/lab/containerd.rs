//! `ctr`, the client of the nodes' containerds: it imports images and lists containers.

use std::fs;
use std::path::Path;

use super::{Lab, LabError, Place};
use crate::command;

impl Lab {
    /// Imports an image archive on every node, unless the nodes have started with it.
    pub async fn load_image(&self, archive: &Path) -> Result<(), LabError> {
        if self.spec.own_images.iter().any(|own| own == archive) {
            return Ok(());
        }
        let archive = fs::canonicalize(archive)
            .map_err(|source| LabError::File { path: archive.to_owned(), source })?;
        for node in &self.spec.topology.nodes {
            let mut arguments = self.ctr(node.name.as_str());
            arguments.extend(["images", "import"].map(str::to_owned));
            arguments.push(archive.display().to_string());
            self.exec_checked(&arguments).await?;
        }
        Ok(())
    }

    /// Runs `ctr` with these arguments on every node, in a directory, as somebody who is logged in
    /// on the node does.
    pub async fn ctr_on_each_node(&self, directory: &Path, arguments: &[String]) -> Result<(), LabError> {
        for node in &self.spec.topology.nodes {
            let address = format!("CONTAINERD_ADDRESS={}", address(node.name.as_str()));
            let directory = format!("--chdir={}", directory.display());
            let mut all = vec!["env".to_owned(), directory, address, self.spec.ctr.display().to_string()];
            all.extend_from_slice(arguments);
            self.exec_checked(&all).await?;
        }
        Ok(())
    }

    async fn exec_checked(&self, arguments: &[String]) -> Result<(), LabError> {
        let output = self.exec(&Place::ControlPlane, arguments).await?;
        command::check(&arguments.join(" "), output)?;
        Ok(())
    }

    /// The first words of a command line for a node's containerd.
    pub(super) fn ctr(&self, node: &str) -> Vec<String> {
        let address = format!("--address={}", address(node));
        vec![self.spec.ctr.display().to_string(), address, "--namespace=k8s.io".to_owned()]
    }
}

/// The socket of a node's containerd, in the lab's mount namespace.
fn address(node: &str) -> String {
    format!("/run/nodes/{node}/containerd/containerd.sock")
}
