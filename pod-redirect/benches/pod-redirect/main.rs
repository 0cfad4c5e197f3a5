//! Measures how long a pod waits for its redirect: this program and Istio's `istio-iptables` set up
//! the same redirect, each in fresh network namespaces, by turns in one run. It prints figures
//! beside their budgets and asserts none, because they depend on the machine as well. Every run
//! must succeed.
//!
//! Istio's program is measured as its init container runs it, with the back end that it chooses
//! itself (iptables-nft, where both are there), and with its own rules for `nft`.
//!
//! `ISP_BENCH_RUNS=10` is a quick run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a benchmark fails by panicking")]

mod figures;
mod pod;
mod program;

use std::fs;
use std::path::Path;

use figures::{Line, MEGABYTE, Spread, milliseconds};
use isp_lab::{pack, provision};
use pod::{Pod, Run};
use program::Program;

/// The runs of each program that are timed.
const RUNS: usize = 100;
/// The runs of each program whose memory is measured.
const WEIGHED: usize = 5;

fn main() {
    let runs = std::env::var("ISP_BENCH_RUNS").map_or(RUNS, |runs| runs.parse().unwrap());
    let meter = provision::init_container_tools(|line| eprintln!("{line}")).unwrap();
    let programs = Program::all();
    let mut timed: [Vec<Run>; 3] = Default::default();
    for run in 1..=runs {
        eprintln!("bench: run {run} of {runs}");
        for (program, timed) in programs.iter().zip(&mut timed) {
            timed.push(Pod::new().time(program.command()));
        }
    }
    let peak = programs.each_ref().map(|program| {
        let weighed = (0..WEIGHED).map(|_| Pod::new().peak_memory(&meter, &program.command()));
        weighed.fold(0.0, f64::max)
    });

    let spread = |of: fn(&Run) -> f64| timed.each_ref().map(|timed| Spread::of(timed.iter().map(of)));
    let wall = spread(|run| milliseconds(run.elapsed));
    let processor = spread(|run| milliseconds(run.processor));
    let sizes = programs.each_ref().map(|program| Some(size(program.path())));
    println!(
        "\npod-redirect: the first run in a fresh network namespace, {runs} of each; {}; load of the machine {}\n",
        program::iptables_version(),
        load_of_machine()
    );
    println!("{}", Line::header(programs.each_ref().map(Program::name)));
    for line in [
        Line::new("time, median", wall.map(|wall| Some(wall.median)), "ms").budget(30.0),
        Line::new("time, 99th percentile", wall.map(|wall| Some(wall.p99)), "ms").budget(30.0),
        Line::new("processor time, median", processor.map(|time| Some(time.median)), "ms"),
        Line::new("peak memory of the largest process", peak.map(Some), "MB").budget(5.0),
        Line::new("program", sizes, "MB"),
        Line::new("image", [Some(image(programs[0].path())), None, None], "MB").budget(5.0),
    ] {
        println!("{line}");
    }
}

/// The size of a file in megabytes.
fn size(file: &Path) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a file has less than 2^52 bytes")]
    let bytes = fs::metadata(file).unwrap().len() as f64;
    bytes / MEGABYTE
}

/// The size of the image with this program.
fn image(program: &Path) -> f64 {
    size(&pack("lab.local/bench/pod-redirect:1", program, "0").unwrap())
}

fn load_of_machine() -> String {
    fs::read_to_string("/proc/loadavg").unwrap().split(' ').take(3).collect::<Vec<_>>().join(" ")
}
