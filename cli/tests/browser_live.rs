//! Reports of real clusters, from their dumps, in a real browser: all of a page is drawn and can be
//! used, and an open page of `report serve` follows the cluster.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use isp_testkit::browser::report::{choose_service, data, expect_whole};
use isp_testkit::browser::{Browser, Key};
use isp_testkit::plugin::{dump, ended, on_dump};
use serde_json::json;

/// It only bounds a test that fails.
const LIMIT: Duration = Duration::from_mins(2);

/// The server. It ends with this value.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(dump: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-isp"));
        command
            .args(["report", "serve", "--listen", "127.0.0.1:0", "--interval", "1", "--from-dir"])
            .arg(dump);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn all_of_a_real_clusters_report_is_drawn_and_everybody_can_use_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut browser = Browser::start();
    for name in ["untouched", "healthy"] {
        let path = directory.path().join(name).with_extension("html");
        let arguments = ["-o", path.to_str().unwrap()];
        let mut report = on_dump(env!("CARGO_BIN_EXE_kubectl-isp"), "report", &dump(name), &arguments);
        assert_eq!(ended(report.output().unwrap()).code, Some(0), "{name}");
        let mut page = browser.open(&format!("file://{}", path.display()));
        expect_whole(&mut page, &data(&std::fs::read_to_string(&path).unwrap()));
    }
}

#[test]
fn an_open_page_follows_the_cluster_and_keeps_what_the_reader_chose() {
    let directory = tempfile::tempdir().unwrap();
    let untouched = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doctor/untouched");
    for entry in std::fs::read_dir(untouched).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), directory.path().join(entry.file_name())).unwrap();
    }
    let server = Server::start(directory.path());
    let mut browser = Browser::start();
    let mut page = browser.open(&server.address);
    let lost = "document.querySelectorAll('svg .path.lost').length";
    assert_ne!(page.evaluate(lost), json!(0));
    choose_service(&mut page, "istio-system/istio-ingressgateway");
    let shown = page.evaluate("document.querySelector('#service').value");
    assert_eq!(shown, json!("istio-system/istio-ingressgateway"));

    let core = directory.path().join("core.yaml");
    let text = std::fs::read_to_string(&core).unwrap();
    let local = text.replace("externalTrafficPolicy: Cluster", "externalTrafficPolicy: Local");
    assert_ne!(text, local);
    std::fs::write(&core, local).unwrap();
    let began = Instant::now();
    while page.evaluate("document.querySelectorAll('svg .path.dropped').length") == json!(0) {
        assert!(began.elapsed() < LIMIT, "the page does not follow; {:?}", page.complaints());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(page.evaluate("document.querySelector('#service').value"), shown);
    assert_eq!(page.evaluate("document.getElementById('live').textContent"), json!(" \u{b7} live"));
    page.evaluate("document.querySelector('button.trace').click()");
    assert_eq!(page.evaluate("document.querySelector('dialog').open"), json!(true));
    page.press(Key::Escape);
    assert_eq!(page.complaints(), [""; 0]);
}
