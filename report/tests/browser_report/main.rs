//! The page in a real browser: what it shows, what it takes to use it, what it refuses.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod sample;

use std::path::PathBuf;
use std::time::Instant;

use isp_report::page::{Use, html};
use isp_report::{Report, model};
use isp_testkit::browser::report::{choose_stage, drawn, low_contrast, walk_by_keyboard};
use isp_testkit::browser::{Browser, Key, Media};
use serde_json::json;

/// A report as a file.
struct Written {
    directory: tempfile::TempDir,
    size: usize,
}

impl Written {
    fn new(report: &Report) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let page = html(report, Use::File);
        std::fs::write(directory.path().join("report.html"), &page).unwrap();
        Self { directory, size: page.len() }
    }

    fn address(&self) -> String {
        format!("file://{}/report.html", self.directory.path().display())
    }
}

/// Where pictures are written, for people to look at.
fn pictures() -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

#[test]
fn every_path_is_drawn_in_each_stage_without_a_complaint_or_a_request() {
    let report = sample::demo();
    let written = Written::new(&report);
    let mut browser = Browser::start();
    let mut page = browser.open(&written.address());
    let all: Vec<u64> = (0..report.paths.len() as u64).collect();
    for stage in 0..2 {
        choose_stage(&mut page, stage);
        let mut numbers = drawn(&mut page);
        numbers.sort_unstable();
        assert_eq!(numbers, all);
        for outcome in model::Outcome::ALL {
            let expected = report.paths.iter().filter(|path| path.journeys[stage].outcome == outcome).count();
            let count =
                page.evaluate(&format!("document.querySelectorAll('svg .path.{}').length", outcome.key()));
            assert_eq!(count, json!(expected), "{outcome:?} in stage {stage}");
        }
    }
    let rows = page.evaluate("document.querySelectorAll('#paths tbody tr').length");
    assert_eq!(rows, json!(report.paths.len()));
    assert_eq!(page.complaints(), [""; 0]);
    assert_eq!(page.requests(), [written.address()]);
}

#[test]
fn the_keyboard_reaches_every_path_and_opens_and_closes_its_trace() {
    let report = sample::demo();
    let written = Written::new(&report);
    let mut browser = Browser::start();
    let mut page = browser.open(&written.address());
    walk_by_keyboard(&mut page, |number, trace| {
        let path = &report.paths[usize::try_from(number).unwrap()];
        for journey in &path.journeys {
            assert!(trace.contains(&journey.line), "trace {number}: {trace}");
            for hop in &journey.hops {
                assert!(trace.contains(&hop.reason), "trace {number}: {trace}");
            }
        }
    });
    assert_eq!(drawn(&mut page).len(), report.paths.len());
    page.press(Key::ShiftTab);
    let before = page.evaluate("document.activeElement.closest('svg .path') !== null");
    assert_eq!(before, json!(true));
    assert_eq!(page.complaints(), [""; 0]);
}

#[test]
fn axe_finds_nothing_in_light_and_dark_with_and_without_a_trace() {
    let written = Written::new(&sample::demo());
    let mut browser = Browser::start();
    let mut page = browser.open(&written.address());
    for media in [Media::Light, Media::Dark] {
        page.show(media);
        assert_eq!(page.inaccessible(), [""; 0], "{media:?}");
        page.evaluate("document.querySelector('button.trace').click()");
        assert_eq!(page.inaccessible(), [""; 0], "{media:?}, with a trace");
        page.press(Key::Escape);
    }
}

#[test]
fn lines_and_text_of_the_drawing_have_contrast_in_both_themes() {
    let written = Written::new(&sample::demo());
    let mut browser = Browser::start();
    let mut page = browser.open(&written.address());
    for media in [Media::Light, Media::Dark] {
        page.show(media);
        for stage in 0..2 {
            choose_stage(&mut page, stage);
            assert_eq!(low_contrast(&mut page), json!([]), "{media:?}, stage {stage}");
        }
    }
}

#[test]
fn the_button_switches_the_theme_against_the_system() {
    let written = Written::new(&sample::demo());
    let mut browser = Browser::start();
    let mut page = browser.open(&written.address());
    page.show(Media::Light);
    let ground = "getComputedStyle(document.documentElement).backgroundColor";
    let light = page.evaluate(ground);
    page.evaluate("document.getElementById('theme').click()");
    let dark = page.evaluate(ground);
    assert_ne!(light, dark);
    page.show(Media::Dark);
    assert_eq!(page.evaluate(ground), dark);
    page.evaluate("document.getElementById('theme').click()");
    assert_eq!(page.evaluate(ground), light);
}

#[test]
fn paper_has_the_tables_and_no_controls() {
    let written = Written::new(&sample::demo());
    let mut browser = Browser::start();
    let mut page = browser.open(&written.address());
    page.evaluate("document.documentElement.dataset.theme = 'dark'");
    page.show(Media::Print);
    let shown = |selector: &str| {
        format!(
            "[...document.querySelectorAll('{selector}')].filter((each) => each.checkVisibility()).length"
        )
    };
    assert_eq!(page.evaluate(&shown("button, select, input, dialog, .skip")), json!(0));
    assert_ne!(page.evaluate(&shown("#paths tbody tr")), json!(0));
    let ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor");
    assert_eq!(ground, json!("rgb(255, 255, 255)"));
}

#[test]
fn names_from_the_cluster_stay_text() {
    let hostile = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">'\"&\u{202e}";
    let mut report = sample::demo();
    report.title = hostile.to_owned();
    report.origin = hostile.to_owned();
    report.time = hostile.to_owned();
    report.services[0].name = hostile.to_owned();
    report.gaps = vec![hostile.to_owned()];
    report.stages[1].label = hostile.to_owned();
    for node in &mut report.nodes {
        node.pool = hostile.to_owned();
        node.remark = hostile.to_owned();
    }
    for path in &mut report.paths {
        path.service = hostile.to_owned();
        path.from.address = hostile.to_owned();
        for journey in &mut path.journeys {
            journey.line = hostile.to_owned();
            journey.arrives = Some(hostile.to_owned());
            journey.hops.iter_mut().for_each(|hop| hop.reason = hostile.to_owned());
        }
    }
    report.timeline.iter_mut().for_each(|event| event.message = hostile.to_owned());
    report.findings.iter_mut().for_each(|finding| finding.remedy = vec![hostile.to_owned()]);
    report.policies.iter_mut().for_each(|policy| policy.rule = hostile.to_owned());
    let written = Written::new(&report);
    let mut browser = Browser::start();
    let mut page = browser.open(&written.address());
    page.evaluate("document.querySelector('button.trace').click()");
    let shown = hostile.replace('\u{202e}', "\u{fffd}");
    assert_eq!(page.evaluate("document.title"), json!(shown));
    assert_eq!(page.evaluate("document.querySelector('h1').textContent"), json!(shown));
    assert_eq!(page.evaluate("document.querySelector('#service').value"), json!(shown));
    assert_eq!(page.evaluate("document.querySelectorAll('img, iframe, object').length"), json!(0));
    assert_eq!(page.evaluate("document.scripts.length"), json!(2));
    assert_eq!(drawn(&mut page).len(), report.paths.len());
    let trace = page.evaluate("document.querySelector('dialog .hops .line').textContent");
    assert_eq!(trace, json!(shown));
    assert_eq!(page.complaints(), [""; 0]);
    assert_eq!(page.requests(), [written.address()]);
}

#[test]
fn without_a_script_the_tables_are_there_and_nothing_that_does_nothing() {
    let written = Written::new(&sample::demo());
    let mut browser = Browser::start();
    let mut page = browser.open_without_scripts(&written.address());
    let shown = |selector: &str| {
        format!(
            "[...document.querySelectorAll('{selector}')].filter((each) => each.checkVisibility()).length"
        )
    };
    assert_ne!(page.evaluate(&shown("#paths tbody tr")), json!(0));
    assert_eq!(page.evaluate(&shown("button, select, input, #drawing")), json!(0));
}

#[test]
fn five_hundred_nodes_are_a_few_boxes_and_less_than_three_megabytes() {
    let before = Instant::now();
    let report = sample::large();
    let written = Written::new(&report);
    println!(
        "500 nodes: {} paths, {} bytes, made in {:?}",
        report.paths.len(),
        written.size,
        before.elapsed()
    );
    assert!(written.size < 3_000_000, "{} bytes", written.size);
    let mut browser = Browser::start();
    let start = Instant::now();
    let mut page = browser.open(&written.address());
    let lines = drawn(&mut page).len();
    let shown = start.elapsed();
    let within = page.evaluate("Math.round(performance.getEntriesByType('navigation')[0].loadEventEnd)");
    println!("500 nodes: {lines} paths drawn, loaded within {within} ms, with the browser {shown:?}");
    assert!(shown.as_secs() < 120, "{shown:?}");
    assert!(lines > 0 && lines < 60, "{lines} lines");
    let named = page.evaluate("[...document.querySelectorAll('#nodes tbody th')].length");
    assert_eq!(named, json!(500));
    page.evaluate(
        "[...document.querySelectorAll('svg .nodes')].at(-1).dispatchEvent(new MouseEvent('click'))",
    );
    assert_ne!(page.evaluate("document.querySelectorAll('dialog .names li').length"), json!(0));
    page.press(Key::Escape);
    assert_eq!(page.complaints(), [""; 0]);
    page.picture(&pictures().join("large.png"));
}

#[test]
fn pictures_for_people() {
    let written = Written::new(&sample::demo());
    let mut browser = Browser::start();
    let mut page = browser.open(&written.address());
    let directory = pictures();
    for (media, name) in [(Media::Light, "light"), (Media::Dark, "dark"), (Media::Print, "print")] {
        page.show(media);
        page.picture(&directory.join(format!("{name}.png")));
    }
    page.show(Media::Light);
    choose_stage(&mut page, 1);
    page.picture(&directory.join("after.png"));
    page.evaluate("document.querySelector('svg .path').dispatchEvent(new MouseEvent('click'))");
    page.picture(&directory.join("trace.png"));
    println!("pictures are in {}", directory.display());
    assert_eq!(page.complaints(), [""; 0]);
}
