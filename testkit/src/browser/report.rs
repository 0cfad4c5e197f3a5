//! The page of `kubectl isp report`: whether all of it is drawn, and whether everybody can use it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Key, Media, Page};

/// So often Tab is pressed before a path counts as out of reach.
const MOST_TABS: usize = 400;

/// The data that the script of a page draws.
pub fn data(html: &str) -> Value {
    let start = html.split("id=\"data\">").nth(1).unwrap();
    serde_json::from_str(start.split("</script>").next().unwrap()).unwrap()
}

/// The numbers of the paths that are drawn.
pub fn drawn(page: &mut Page<'_>) -> Vec<u64> {
    let numbers =
        page.evaluate("[...document.querySelectorAll('svg .path')].map((each) => Number(each.dataset.path))");
    serde_json::from_value(numbers).unwrap()
}

/// Shows a stage.
pub fn choose_stage(page: &mut Page<'_>, stage: usize) {
    page.evaluate(&format!("document.querySelector('input[name=stage][value=\"{stage}\"]').click()"));
}

/// Shows the paths of a Service.
pub fn choose_service(page: &mut Page<'_>, service: &str) {
    let service = json!(service);
    page.evaluate(&format!("document.querySelector('#service').value = {service}"));
    page.evaluate("document.querySelector('#service').dispatchEvent(new Event('change'))");
}

/// Lines and text of the drawing whose contrast to the ground is too low.
pub fn low_contrast(page: &mut Page<'_>) -> Value {
    page.evaluate(include_str!("contrast.js"))
}

/// Reaches every drawn path with Tab, opens its trace with Enter, and closes it with Escape. `read`
/// gets the number of each path and the text of its trace.
pub fn walk_by_keyboard(page: &mut Page<'_>, mut read: impl FnMut(u64, &str)) {
    let all: BTreeSet<u64> = drawn(page).into_iter().collect();
    let mut reached = BTreeSet::new();
    for _ in 0..MOST_TABS {
        page.press(Key::Tab);
        let focused = page.evaluate("document.activeElement.closest('svg .path')?.dataset.path ?? null");
        let Some(number) = focused.as_str().map(|number| number.parse().unwrap()) else { continue };
        let stroke = page.evaluate("getComputedStyle(document.activeElement.querySelector('.reach')).stroke");
        assert_ne!(stroke, json!("rgba(0, 0, 0, 0)"), "path {number} does not show that it has the focus");
        page.press(Key::Enter);
        let text = page.evaluate("document.querySelector('dialog[open]')?.textContent ?? ''");
        read(number, text.as_str().unwrap());
        page.press(Key::Escape);
        assert_eq!(page.evaluate("document.querySelector('dialog[open]') === null"), json!(true));
        assert_eq!(page.evaluate("document.activeElement.dataset.path"), focused);
        reached.insert(number);
        if reached == all {
            return;
        }
    }
    panic!("the keyboard reaches the paths {reached:?} of {all:?}");
}

/// Fails unless each path of each Service is drawn in each stage, the keyboard reaches it, and
/// nobody finds fault with the page: the browser, axe-core, and the measure of contrast.
pub fn expect_whole(page: &mut Page<'_>, data: &Value) {
    let paths = data["paths"].as_array().unwrap();
    for service in data["services"].as_array().unwrap() {
        choose_service(page, service.as_str().unwrap());
        let own = (0..).zip(paths).filter(|(_, path)| path["service"] == *service);
        let own: Vec<u64> = own.map(|(number, _)| number).collect();
        for stage in 0..data["stages"].as_array().unwrap().len() {
            if page.evaluate("document.querySelectorAll('input[name=stage]').length") != json!(0) {
                choose_stage(page, stage);
            }
            let mut numbers = drawn(page);
            numbers.sort_unstable();
            assert_eq!(numbers, own, "{service}, stage {stage}");
            for media in [Media::Light, Media::Dark] {
                page.show(media);
                assert_eq!(low_contrast(page), json!([]), "{service}, stage {stage}, {media:?}");
            }
        }
        walk_by_keyboard(page, |number, trace| {
            for journey in paths[usize::try_from(number).unwrap()]["journeys"].as_array().unwrap() {
                assert!(trace.contains(journey["line"].as_str().unwrap()), "path {number}: {trace}");
            }
        });
    }
    for media in [Media::Light, Media::Dark] {
        page.show(media);
        assert_eq!(page.inaccessible(), [""; 0], "{media:?}");
    }
    assert_eq!(page.complaints(), [""; 0]);
    assert_eq!(page.requests().len(), 1, "only itself: {:?}", page.requests());
}
