//! The plugin as archives, and the manifest by which krew installs it.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;

use super::Release;
use super::archive::{Entry, tar_gz};
use crate::dist::Platform;

/// The program. kubectl finds it by this name as `kubectl isp`.
pub(super) const PROGRAM: &str = "kubectl-isp";
/// The executable by which kubectl completes the plugin's arguments. It is in the `cli` crate.
pub(super) const COMPLETION: &str = "kubectl_complete-isp";
/// The manifest. krew wants the name of the plugin.
pub(super) const MANIFEST: &str = "isp.yaml";

const DESCRIPTION: &str = "\
Shows the state of IngressSourcePreserves, plans their changes, explains what a node does with
preserved Services, and finds faults. It only reads. The cluster needs ingress-source-preserve.
";

/// krew links only the program into its directory on the PATH.
const CAVEATS: &str = "\
To complete names, put kubectl_complete-isp on the PATH, too:
  cp \"${KREW_ROOT:-$HOME/.krew}/store/isp/VERSION/kubectl_complete-isp\" \"${KREW_ROOT:-$HOME/.krew}/bin/\"
";

/// The archive of the plugin for one platform.
pub(super) struct PluginArchive {
    pub(super) platform: Platform,
    pub(super) file: String,
    pub(super) sha256: String,
}

/// The name of an archive.
pub(super) fn file_name(version: &str, platform: Platform) -> String {
    format!("{PROGRAM}-{version}-linux-{}.tar.gz", platform.architecture())
}

/// Packs the program, its completion and its license.
pub(super) fn pack(
    program: Vec<u8>,
    completion: Vec<u8>,
    license: Vec<u8>,
    seconds: u64,
) -> io::Result<Vec<u8>> {
    let entries = [
        (PROGRAM.to_owned(), Entry::program(program)),
        (COMPLETION.to_owned(), Entry::program(completion)),
        ("LICENSE".to_owned(), Entry::file(license)),
    ];
    tar_gz(&BTreeMap::from(entries), seconds)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Plugin<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Metadata<'a>,
    spec: Spec<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    version: String,
    homepage: &'a str,
    short_description: &'a str,
    description: &'a str,
    caveats: String,
    platforms: Vec<Download<'a>>,
}

#[derive(Serialize)]
struct Download<'a> {
    selector: Selector,
    uri: String,
    sha256: &'a str,
    files: [Copied; 3],
    bin: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Selector {
    match_labels: BTreeMap<&'static str, &'static str>,
}

#[derive(Serialize)]
struct Copied {
    from: &'static str,
    to: &'static str,
}

/// The manifest for these archives.
pub(super) fn manifest(release: &Release, archives: &[PluginArchive]) -> Result<String, serde_yaml::Error> {
    let Release { version, home, .. } = release;
    let platforms = archives.iter().map(|PluginArchive { platform, file, sha256 }| Download {
        selector: Selector {
            match_labels: BTreeMap::from([("os", "linux"), ("arch", platform.architecture())]),
        },
        uri: home.download(version, file),
        sha256,
        files: [PROGRAM, COMPLETION, "LICENSE"].map(|from| Copied { from, to: "." }),
        bin: PROGRAM,
    });
    serde_yaml::to_string(&Plugin {
        api_version: "krew.googlecontainertools.github.com/v1alpha2",
        kind: "Plugin",
        metadata: Metadata { name: "isp" },
        spec: Spec {
            version: format!("v{version}"),
            homepage: home.as_str(),
            short_description: "Show and check preserved client source IPs",
            description: DESCRIPTION,
            caveats: CAVEATS.replace("VERSION", &format!("v{version}")),
            platforms: platforms.collect(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::release;
    use super::*;

    #[test]
    fn the_manifest_is_as_krew_reads_it() {
        let archive = PluginArchive {
            platform: Platform::Arm64,
            file: file_name("0.1.0", Platform::Arm64),
            sha256: "0a".repeat(32),
        };
        let expected = "\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: isp
spec:
  version: v0.1.0
  homepage: https://github.com/ingress-source-preserve/ingress-source-preserve
  shortDescription: Show and check preserved client source IPs
  description: |
    Shows the state of IngressSourcePreserves, plans their changes, explains what a node does with
    preserved Services, and finds faults. It only reads. The cluster needs ingress-source-preserve.
  caveats: |
    To complete names, put kubectl_complete-isp on the PATH, too:
      cp \"${KREW_ROOT:-$HOME/.krew}/store/isp/v0.1.0/kubectl_complete-isp\" \"${KREW_ROOT:-$HOME/.krew}/bin/\"
  platforms:
  - selector:
      matchLabels:
        arch: arm64
        os: linux
    uri: https://github.com/ingress-source-preserve/ingress-source-preserve/releases/download/v0.1.0/kubectl-isp-0.1.0-linux-arm64.tar.gz
    sha256: DIGEST
    files:
    - from: kubectl-isp
      to: .
    - from: kubectl_complete-isp
      to: .
    - from: LICENSE
      to: .
    bin: kubectl-isp
";
        let manifest = manifest(&release("a.b"), &[archive]).unwrap();
        assert_eq!(manifest, expected.replace("DIGEST", &"0a".repeat(32)));
    }
}
