//! The directory that kube-proxy sees in the place of its own.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use kube::config::{AuthInfo, Kubeconfig, NamedAuthInfo};

use super::identity::Identity;
use super::{ServingError, read, write};

/// How much of the agent's directory kube-proxy sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mirrored {
    /// All of it, in the place of its own directory.
    All,
    /// The kubeconfig, on top of its own.
    Kubeconfig,
}

/// Fills the directory: every file that kube-proxy would not see otherwise as it is in the original, and a kubeconfig with another
/// server, name and authority, and a client
/// certificate for the way to the agent. The token stays as it was; client-go sends both. Files that are as they should be are not
/// touched: kube-proxy ends when its configuration is written anew.
pub(crate) fn mirror(
    kubeconfig: &Path,
    address: SocketAddr,
    identity: &Identity,
    directory: &Path,
    mirrored: Mirrored,
) -> Result<(), ServingError> {
    let mut config = Kubeconfig::read_from(kubeconfig)
        .map_err(|source| ServingError::Original { path: kubeconfig.to_owned(), source: Box::new(source) })?;
    for cluster in config.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.server = Some(format!("https://{address}"));
        cluster.certificate_authority = None;
        cluster.certificate_authority_data = Some(base64(&identity.authority)?);
        cluster.tls_server_name = Some(identity.name.clone());
    }
    let (certificate, key) = (base64(&identity.client.certificate)?, base64(&identity.client.key)?);
    let user = current_user(&mut config);
    user.client_certificate = None;
    user.client_certificate_data = Some(certificate);
    user.client_key = None;
    user.client_key_data = Some(key.into());

    if mirrored == Mirrored::All {
        copy_others(kubeconfig, directory)?;
    }
    let name = kubeconfig.file_name().unwrap_or_default();
    update(&directory.join(name), &format!("{:#}\n", serde_json::to_value(&config)?))
}

fn copy_others(kubeconfig: &Path, directory: &Path) -> Result<(), ServingError> {
    let name = kubeconfig.file_name().unwrap_or_default();
    let parent = kubeconfig.parent().unwrap_or(kubeconfig);
    let fail = |source| ServingError::Read { path: parent.to_owned(), source };
    for entry in fs::read_dir(parent).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        // What begins with two dots is how a ConfigMap is laid out, not what it holds.
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !hidden && entry.file_name() != name && entry.path().is_file() {
            update(&directory.join(entry.file_name()), &read(&entry.path())?)?;
        }
    }
    Ok(())
}

/// The user of the current context; one is added where the context names none that is there.
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

/// The encoding that kubeconfigs use, by the type that Kubernetes' own objects use for it.
fn base64(text: &str) -> Result<String, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(k8s_openapi::ByteString(text.as_bytes().to_vec()))?)
}

fn update(path: &Path, content: &str) -> Result<(), ServingError> {
    if fs::read_to_string(path).is_ok_and(|present| present == content) {
        Ok(())
    } else {
        write(path, content)
    }
}
