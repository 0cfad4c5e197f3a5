//! The client certificate of a kube-proxy that has no token. TLS from kube-proxy ends at the agent,
//! so the agent presents this certificate to the API server. It does so only for clients on the
//! loopback address, which have proved to be kube-proxy, and never for its own requests.

use std::fmt;
use std::fs;
use std::path::Path;

use kube::config::Kubeconfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;

use super::{UpstreamError, decode_base64, parse_certificates, read_kubeconfig};

/// A certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ClientCertificate {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientCertificate").finish_non_exhaustive()
    }
}

/// The certificate fields of a kubeconfig user.
#[derive(Default, Deserialize)]
struct User {
    #[serde(rename = "client-certificate")]
    certificate_file: Option<String>,
    #[serde(rename = "client-certificate-data")]
    certificate: Option<String>,
    #[serde(rename = "client-key")]
    key_file: Option<String>,
    #[serde(rename = "client-key-data")]
    key: Option<String>,
}

impl ClientCertificate {
    /// Reads the certificate of the current context's user, if it has one. Data takes precedence
    /// over files, as in client-go.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, UpstreamError> {
        let config = read_kubeconfig(path)?;
        let bad = |reason: String| UpstreamError::BadCredential { path: path.to_owned(), reason };
        let user = current_user(&config).map_err(|error| bad(error.to_string()))?;
        let part = |field, data: Option<String>, file: Option<String>| match (data, file) {
            (Some(data), _) => {
                decode_base64(&data).map(Some).map_err(|reason| bad(format!("{field}-data: {reason}")))
            }
            (None, Some(file)) => fs::read(&file).map(Some).map_err(|source| UpstreamError::Credential {
                field,
                path: file.into(),
                source,
            }),
            (None, None) => Ok(None),
        };
        let certificate = part("client-certificate", user.certificate, user.certificate_file)?;
        let key = part("client-key", user.key, user.key_file)?;
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(Self { certificate, key })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(bad("there is no client-key for it".to_owned())),
            (None, Some(_)) => Err(bad("there is a client-key without a client-certificate".to_owned())),
        }
    }

    pub(super) fn parse(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| format!("client-key: {error}"))?;
        Ok((parse_certificates(&self.certificate)?, key))
    }
}

fn current_user(config: &Kubeconfig) -> Result<User, serde_json::Error> {
    let context = config.contexts.iter().find(|named| Some(&named.name) == config.current_context.as_ref());
    let name = context.and_then(|named| named.context.as_ref()).and_then(|context| context.user.as_ref());
    let user = config.auth_infos.iter().find(|named| Some(&named.name) == name);
    match user.and_then(|named| named.auth_info.as_ref()) {
        // kube's types hide the key from everything but serialization.
        Some(user) => serde_json::from_value(serde_json::to_value(user)?),
        None => Ok(User::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(user: &str) -> Result<Option<ClientCertificate>, String> {
        let directory = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["kube-proxy".to_owned()]).unwrap();
        fs::write(directory.path().join("own.crt"), made.cert.pem()).unwrap();
        fs::write(directory.path().join("own.key"), made.signing_key.serialize_pem()).unwrap();
        let path = directory.path().join("kubeconfig.conf");
        let text = format!(
            "contexts: [{{name: one, context: {{cluster: c, user: u}}}}]\ncurrent-context: one\nusers: [{{name: u, user: {user}}}]\n"
        );
        fs::write(&path, text).unwrap();
        ClientCertificate::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_user_with_files_has_a_certificate_and_one_with_a_token_has_none() {
        let found = read("{client-certificate: own.crt, client-key: own.key}").unwrap().unwrap();
        assert_eq!(found.parse().unwrap().0.len(), 1);
        assert_eq!(read("{tokenFile: /token}").unwrap(), None);
    }

    #[test]
    fn a_certificate_that_cannot_be_used_is_named_by_its_field() {
        for (user, expected) in [
            ("{client-certificate: own.crt}", "no client-key"),
            ("{client-key: own.key}", "without a client-certificate"),
            ("{client-certificate: own.crt, client-key: gone.key}", "cannot read client-key"),
            ("{client-certificate-data: '!', client-key: own.key}", "client-certificate-data"),
            ("{client-certificate-data: bm9uZQ, client-key: own.key}", "client-certificate-data"),
            ("{client-certificate-data: bm9u ZQ==, client-key: own.key}", "client-certificate-data"),
            ("{client-certificate: own.crt, client-key-data: bm9uZR==}", "client-key-data"),
        ] {
            let error = read(user).unwrap_err();
            assert!(error.contains(expected), "{user}: {error}");
        }
        let mixed = read("{client-certificate-data: bm9uZQ==, client-key: own.key}").unwrap().unwrap();
        assert!(mixed.parse().is_err(), "data comes before files, and this holds no certificate");
    }
}
