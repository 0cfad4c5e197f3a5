//! The page: one HTML file with its style, its script and its data.
//!
//! Names and messages come from the cluster, and anybody who may create a Service or an Event
//! chooses them. So text is escaped in HTML and in the embedded JSON, the script only ever sets
//! `textContent`, and a content security policy allows this script and this style and nothing else.
//!
//! Tables with everything that matters are part of the HTML. The drawing and the traces need the
//! script.

mod cluster;
mod data;
mod findings;
mod label;
mod markup;
mod paths;
mod sections;
mod summary;
mod timeline;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use self::markup::escape;
use crate::model::Report;

#[cfg(test)]
mod tests;

const STYLE: &str = concat!(include_str!("../assets/colours.css"), include_str!("../assets/page.css"));
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("../assets/elements.js"),
    include_str!("../assets/layout.js"),
    include_str!("../assets/drawing.js"),
    include_str!("../assets/panel.js"),
    include_str!("../assets/controls.js"),
    include_str!("../assets/live.js"),
    "start();\n})();\n"
);

/// Where the page is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// From a file. The page connects to nothing.
    File,
    /// From a server with the path `/events`, which announces a new version of the page.
    Live,
}

/// The page of a report.
pub fn html(report: &Report, usage: Use) -> String {
    let (connect, live) = match usage {
        Use::File => ("", ""),
        Use::Live => (" connect-src 'self';", " data-live"),
    };
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}';{connect} base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'",
        hash(SCRIPT),
        hash(STYLE)
    );
    let title = escape(&report.title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"{live}>\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    );
    sections::write(&mut page, report);
    page.push_str("<script type=\"application/json\" id=\"data\">");
    page.push_str(&data::json(report));
    page.push_str("</script>\n<script>");
    page.push_str(SCRIPT);
    page.push_str("</script>\n</body>\n</html>\n");
    page
}

/// The source expression of an inline script or style.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}
