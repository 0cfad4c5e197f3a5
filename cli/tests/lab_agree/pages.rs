//! The reports in a browser. `report.png` is the picture of docs/images.

use std::path::PathBuf;

use isp_testkit::browser::Browser;
use isp_testkit::browser::report::{data, expect_whole};

use crate::world::World;

/// Saves a report.
pub(crate) async fn save(world: &World, name: &str, arguments: &[&str]) -> PathBuf {
    let path = world.path(&format!("{name}.html"));
    let ended = world.run(&[&["report", "-o", path.to_str().unwrap()], arguments].concat()).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    path
}

/// Opens the reports of a broken and of the sound cluster, and takes a picture of another.
pub(crate) async fn look_at(reports: [PathBuf; 2], picture: PathBuf) {
    tokio::task::spawn_blocking(move || {
        let mut browser = Browser::start();
        for path in &reports {
            let mut page = browser.open(&format!("file://{}", path.display()));
            expect_whole(&mut page, &data(&std::fs::read_to_string(path).unwrap()));
        }
        let mut page = browser.open(&format!("file://{}", picture.display()));
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pictures");
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("report.png");
        page.picture_to("#drawing", &file);
        println!("a picture is in {}", file.display());
    })
    .await
    .unwrap();
}
