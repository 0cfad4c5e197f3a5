//! Fills the directory that kube-proxy sees in place of its own.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, Kubeconfig, NamedAuthInfo};

use super::identity::Identity;
use super::{ServingError, read, write};

/// Which files kube-proxy sees from the agent's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MirrorScope {
    /// All files, in place of its own directory.
    AllFiles,
    /// The kubeconfig, on top of its own directory.
    Kubeconfig,
}

/// Writes a kubeconfig with the agent's address, server name and CA, and with a client certificate
/// for the agent. The token stays; client-go sends both. Also copies the files that kube-proxy
/// would not see otherwise. Leaves an unchanged file untouched, because kube-proxy exits when its
/// configuration file is written.
pub(crate) fn mirror(
    kubeconfig: &Path,
    address: SocketAddr,
    identity: &Identity,
    directory: &Path,
    scope: MirrorScope,
) -> Result<(), ServingError> {
    let mut config = Kubeconfig::read_from(kubeconfig)
        .map_err(|source| ServingError::Original { path: kubeconfig.to_owned(), source: Box::new(source) })?;
    for cluster in config.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.server = Some(format!("https://{address}"));
        cluster.certificate_authority = None;
        cluster.certificate_authority_data = Some(STANDARD.encode(&identity.ca));
        cluster.tls_server_name = Some(identity.name.clone());
    }
    let (certificate, key) =
        (STANDARD.encode(&identity.client.certificate), STANDARD.encode(&identity.client.key));
    let user = current_user(&mut config);
    user.client_certificate = None;
    user.client_certificate_data = Some(certificate);
    user.client_key = None;
    user.client_key_data = Some(key.into());

    if scope == MirrorScope::AllFiles {
        copy_other_files(kubeconfig, directory)?;
    }
    let name = kubeconfig.file_name().unwrap_or_default();
    update(&directory.join(name), &format!("{:#}\n", serde_json::to_value(&config)?))
}

fn copy_other_files(kubeconfig: &Path, directory: &Path) -> Result<(), ServingError> {
    let name = kubeconfig.file_name().unwrap_or_default();
    let parent = kubeconfig.parent().unwrap_or(kubeconfig);
    let fail = |source| ServingError::Read { path: parent.to_owned(), source };
    for entry in fs::read_dir(parent).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        // The kubelet lays out a ConfigMap with entries that begin with two dots.
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !hidden && entry.file_name() != name && entry.path().is_file() {
            update(&directory.join(entry.file_name()), &read(&entry.path())?)?;
        }
    }
    Ok(())
}

/// Returns the user of the current context, and adds one if it does not exist.
fn current_user(config: &mut Kubeconfig) -> &mut AuthInfo {
    const ADDED: &str = "kube-proxy";
    let current = config.current_context.clone();
    let context = config.contexts.iter_mut().find(|named| Some(&named.name) == current.as_ref());
    let context = context.and_then(|named| named.context.as_mut());
    let named = context.as_ref().and_then(|context| context.user.clone()).filter(|name| !name.is_empty());
    let name = named.unwrap_or_else(|| ADDED.to_owned());
    if let Some(context) = context {
        context.user = Some(name.clone());
    }
    let found = config.auth_infos.iter().position(|named| named.name == name);
    let place = found.unwrap_or(config.auth_infos.len());
    if found.is_none() {
        config.auth_infos.push(NamedAuthInfo { name, ..NamedAuthInfo::default() });
    }
    config.auth_infos[place].auth_info.get_or_insert_default()
}

fn update(path: &Path, content: &str) -> Result<(), ServingError> {
    if fs::read_to_string(path).is_ok_and(|present| present == content) {
        Ok(())
    } else {
        write(path, content)
    }
}
