//! One page in the browser.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::keys::Key;
use super::pipe::Pipe;

/// The usual width of a window.
const WIDTH: u32 = 1280;

/// How a page is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// On a screen, with a light theme.
    Light,
    /// On a screen, with a dark theme.
    Dark,
    /// On paper.
    Print,
}

/// A page. Problems that it logs are kept.
pub struct Page<'a> {
    pipe: &'a mut Pipe,
    session: String,
    axe: String,
    log: PathBuf,
}

impl<'a> Page<'a> {
    pub(super) fn open(pipe: &'a mut Pipe, address: &str, scripts: bool, axe: String, log: PathBuf) -> Self {
        let target = pipe.call(None, "Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = pipe.call(None, "Target.attachToTarget", &attach);
        let session = attached["sessionId"].as_str().unwrap().to_owned();
        let mut page = Self { pipe, session, axe, log };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), &json!({}));
        }
        page.call("Page.setLifecycleEventsEnabled", &json!({"enabled": true}));
        page.call("Emulation.setScriptExecutionDisabled", &json!({"value": !scripts}));
        page.size(WIDTH, 900);
        let opened = page.call("Page.navigate", &json!({"url": address}));
        assert!(opened.get("errorText").is_none(), "{address}: {}; {}", opened["errorText"], page.said());
        // Other pages have loaded before, and an empty one in this place.
        let loaded = |event: &Value| {
            let told = &event["params"];
            told["name"] == "load" && told["loaderId"] == opened["loaderId"]
        };
        page.pipe.wait("the page", loaded);
        page
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.pipe.call(Some(&self.session), method, params)
    }

    /// Sets the size of the window.
    pub fn size(&mut self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Shows the page on another medium.
    pub fn show(&mut self, media: Media) {
        let (medium, scheme) = match media {
            Media::Light => ("screen", "light"),
            Media::Dark => ("screen", "dark"),
            Media::Print => ("print", "light"),
        };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", &json!({"media": medium, "features": features}));
    }

    /// The value of a JavaScript expression. The content security policy of the page does not
    /// apply to it. A promise is awaited.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", &asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    /// Presses a key and releases it.
    pub fn press(&mut self, key: Key) {
        for event in key.events() {
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Writes a picture of the whole page.
    pub fn picture(&mut self, path: &Path) {
        self.capture(path, &json!({"format": "png", "captureBeyondViewport": true}));
    }

    /// Writes a picture of the page down to the end of this element.
    pub fn picture_to(&mut self, selector: &str, path: &Path) {
        let selector = json!(selector);
        let end = format!("document.querySelector({selector}).getBoundingClientRect().bottom + scrollY");
        let height = self.evaluate(&format!("Math.ceil({end}) + 16"));
        let clip = json!({"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1});
        self.capture(path, &json!({"format": "png", "captureBeyondViewport": true, "clip": clip}));
    }

    fn capture(&mut self, path: &Path, asked: &Value) {
        use base64::Engine;
        let answer = self.call("Page.captureScreenshot", asked);
        let bytes =
            base64::engine::general_purpose::STANDARD.decode(answer["data"].as_str().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// What axe-core finds wrong, one line each: accessibility, including contrast.
    pub fn inaccessible(&mut self) -> Vec<String> {
        let axe = std::mem::take(&mut self.axe);
        self.evaluate(&format!("{axe}; true"));
        self.axe = axe;
        let found = self.evaluate(
            "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}) \
             .then((result) => result.violations.flatMap((each) => \
             each.nodes.map((node) => `${each.id}: ${node.target.join(' ')}: ${node.failureSummary}`)))",
        );
        serde_json::from_value(found).unwrap()
    }

    /// Everything that the page has complained about: errors and warnings on the console, uncaught
    /// exceptions, violations of its policy.
    pub fn complaints(&mut self) -> Vec<String> {
        // An answer comes after the events before it.
        self.evaluate("new Promise((done) => setTimeout(() => done(true), 0))");
        let ours = self.pipe.events().iter().filter(|event| event["sessionId"] == json!(self.session));
        ours.filter(|event| is_complaint(event)).map(|event| event["params"].to_string()).collect()
    }

    /// The addresses that the page has asked for.
    pub fn requests(&self) -> Vec<String> {
        let ours = self.pipe.events().iter().filter(|event| event["sessionId"] == json!(self.session));
        ours.filter(|event| event["method"] == "Network.requestWillBeSent")
            .filter_map(|event| event["params"]["request"]["url"].as_str().map(str::to_owned))
            .collect()
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

fn is_complaint(event: &Value) -> bool {
    let grave = |level: &Value| level == "error" || level == "warning" || level == "assert";
    match event["method"].as_str() {
        Some("Runtime.exceptionThrown") => true,
        Some("Runtime.consoleAPICalled") => grave(&event["params"]["type"]),
        Some("Log.entryAdded") => grave(&event["params"]["entry"]["level"]),
        _ => false,
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        self.pipe.send(Some(&self.session), "Page.close", &json!({}));
    }
}
