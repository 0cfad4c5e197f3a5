//! The provenance of a release, as a statement of in-toto with a predicate of SLSA. It says which
//! commit, parameters and tools the files come from. It is not signed: who publishes it signs it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Release;
use crate::dist::Platform;

/// A statement. <https://github.com/in-toto/attestation/tree/main/spec/v1> defines the fields.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Statement {
    #[serde(rename = "_type")]
    kind: &'static str,
    subject: Vec<Subject>,
    predicate_type: &'static str,
    predicate: Predicate,
}

#[derive(Debug, Serialize)]
struct Subject {
    name: String,
    digest: BTreeMap<&'static str, String>,
}

/// <https://slsa.dev/spec/v1.0/provenance> defines the fields.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Predicate {
    build_definition: BuildDefinition,
    run_details: RunDetails,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct BuildDefinition {
    build_type: String,
    external_parameters: Parameters,
    internal_parameters: Tools,
    resolved_dependencies: Vec<Dependency>,
}

#[derive(Debug, Serialize)]
struct Parameters {
    registry: String,
    home: String,
    platforms: Vec<String>,
}

/// The tools whose versions decide about the bytes of the release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Tools {
    /// The output of `rustc --version`.
    pub(super) rustc: String,
    /// The C library that is part of the images' programs, by platform.
    #[serde(rename = "cLibraries")]
    pub(super) c_libraries: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
struct Dependency {
    uri: String,
    digest: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
struct RunDetails {
    builder: Builder,
}

#[derive(Debug, Serialize)]
struct Builder {
    id: String,
}

/// The statement about files, by name with their SHA-256.
pub(super) fn statement(
    release: &Release,
    platforms: &[Platform],
    tools: Tools,
    files: &BTreeMap<String, String>,
) -> Statement {
    let Release { version, registry, home, source } = release;
    let subject = |(name, digest): (&String, &String)| Subject {
        name: name.clone(),
        digest: BTreeMap::from([("sha256", digest.clone())]),
    };
    let commit = Dependency {
        uri: format!("git+{}@{}", home.as_str(), source.commit),
        digest: BTreeMap::from([("gitCommit", source.commit.clone())]),
    };
    Statement {
        kind: "https://in-toto.io/Statement/v1",
        subject: files.iter().map(subject).collect(),
        predicate_type: "https://slsa.dev/provenance/v1",
        predicate: Predicate {
            build_definition: BuildDefinition {
                build_type: home.source(version, "docs/release.md#provenance"),
                external_parameters: Parameters {
                    registry: registry.to_string(),
                    home: home.as_str().to_owned(),
                    platforms: platforms.iter().map(ToString::to_string).collect(),
                },
                internal_parameters: tools,
                resolved_dependencies: vec![commit],
            },
            run_details: RunDetails {
                builder: Builder { id: home.source(version, "docs/release.md#the-builder") },
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::release;
    use super::*;

    #[test]
    fn a_statement_has_what_in_toto_and_slsa_require() {
        let files = BTreeMap::from([("install.yaml".to_owned(), "0a".repeat(32))]);
        let c_libraries = BTreeMap::from([("linux/amd64".to_owned(), "GLIBC 2.36".to_owned())]);
        let tools = Tools { rustc: "rustc 1.95.0".to_owned(), c_libraries };
        let statement = statement(&release("r.example/isp"), &[Platform::Amd64], tools, &files);
        let statement: Value = serde_json::to_value(statement).unwrap();
        assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
        assert_eq!(
            statement["subject"],
            json!([{"name": "install.yaml", "digest": {"sha256": "0a".repeat(32)}}])
        );
        assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
        let definition = &statement["predicate"]["buildDefinition"];
        let is_uri = |value: &Value| value.as_str().is_some_and(|text| text.starts_with("https://"));
        assert!(is_uri(&definition["buildType"]));
        assert!(is_uri(&statement["predicate"]["runDetails"]["builder"]["id"]));
        assert_eq!(definition["externalParameters"]["registry"], "r.example/isp");
        assert_eq!(definition["externalParameters"]["platforms"], json!(["linux/amd64"]));
        assert_eq!(
            definition["internalParameters"],
            json!({"rustc": "rustc 1.95.0", "cLibraries": {"linux/amd64": "GLIBC 2.36"}})
        );
        let commit = &definition["resolvedDependencies"][0];
        assert_eq!(commit["digest"], json!({"gitCommit": "c0ffee"}));
        assert!(commit["uri"].as_str().unwrap().ends_with("@c0ffee"));
    }
}
