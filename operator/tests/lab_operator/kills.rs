//! The operator is killed after its writes. Each time a new one continues from the state in the
//! cluster.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use isp_api::preserve::Phase;
use isp_testkit::Process;
use isp_testkit::snapshot::Snapshot;
use isp_testkit::web_lab::{AGENT_IMAGE, OBJECT, WebLab, addresses, operator, sample};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::PROGRAM;
use super::gate::{Gate, Hears, Kills};

/// How many kill points to test one by one, each with its own apply and delete. A number above the
/// total means all.
const SINGLE_KILLS: &str = "ISP_SOAK_OPERATOR_KILLS";
/// Timeout for a whole apply or delete with all its kills.
const DEADLINE: Duration = Duration::from_mins(5);

/// An operator that is restarted whenever it was killed.
struct Revived<'a> {
    scenario: &'a WebLab,
    gate: Gate,
    kubeconfig: PathBuf,
    process: Process,
}

impl<'a> Revived<'a> {
    async fn start(scenario: &'a WebLab) -> Self {
        let gate = Gate::open(operator::client(scenario).await).await;
        let text = fs::read_to_string(operator::kubeconfig(scenario).await).unwrap();
        let mut config: Value = serde_json::from_str(&text).unwrap();
        config["clusters"][0]["cluster"] = json!({"server": gate.url()});
        let kubeconfig = scenario.file("gate.kubeconfig");
        fs::write(&kubeconfig, config.to_string()).unwrap();
        let process = operator::run(scenario, &kubeconfig, AGENT_IMAGE, "life-0.log");
        gate.admit(process.pid()).await;
        Self { scenario, gate, kubeconfig, process }
    }

    async fn revive(&mut self) {
        let log = format!("life-{}.log", self.gate.count().await.1);
        self.process = operator::run(self.scenario, &self.kubeconfig, AGENT_IMAGE, &log);
        self.gate.admit(self.process.pid()).await;
    }

    /// Restarts the operator as needed until the condition holds.
    async fn until(&mut self, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
        let began = Instant::now();
        while !is_so().await {
            if let Some(status) = self.process.ended() {
                let complaint = self.process.complained();
                assert_eq!(status.signal(), Some(Signal::SIGKILL as i32), "it ended by itself: {complaint}");
                self.revive().await;
            }
            assert!(
                began.elapsed() < DEADLINE,
                "{what}: not within {DEADLINE:?}; writes: {:#?}",
                self.gate.count().await
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Applies and deletes the object. Returns the number of writes and of kills.
    async fn on_and_off(&mut self, kills: Kills, before: &Snapshot) -> (usize, usize) {
        let (scenario, lab) = (self.scenario, &self.scenario.lab);
        self.gate.begin(kills).await;
        lab.kubectl(["apply", "-f", &sample()]).await.unwrap();
        self.until("ready", async || scenario.phase().await == Some(Phase::Ready)).await;
        addresses::arrive(scenario).await;
        lab.kubectl(["delete", "-f", &sample(), "--wait=false"]).await.unwrap();
        self.until("gone", async || scenario.objects().get_opt(OBJECT).await.unwrap().is_none()).await;
        scenario.expect_restored(before).await;
        let (writes, killed) = self.gate.count().await;
        (writes.len(), killed)
    }
}

#[tokio::test]
async fn an_operator_that_is_killed_after_any_write_is_followed_by_one_that_goes_on() {
    let scenario = WebLab::up("operator-kills", PROGRAM).await;
    scenario.install_without_operator().await;
    let before = scenario.snapshot().await;
    let mut operator = Revived::start(&scenario).await;

    for first in [Hears::Nothing, Hears::TheAnswer] {
        let began = Instant::now();
        let (writes, killed) = operator.on_and_off(Kills::Always(first), &before).await;
        let seconds = began.elapsed().as_secs_f64();
        println!("killed after every write ({first:?} first): {killed} kill points, {seconds:.1} s");
        for line in operator.gate.count().await.0 {
            println!("  {line}");
        }
        assert_eq!(killed, writes);
        // Nine steps to apply and eleven to delete; the number of status updates varies.
        assert!(killed >= 20, "{killed} is not the whole way");
    }

    if let Ok(most) = std::env::var(SINGLE_KILLS) {
        let points = kill_once_on_each_way(&mut operator, most.parse().unwrap(), &before).await;
        println!("killed once on a way: {points} kill points");
        assert!(points > 0);
    }
}

/// Applies and deletes the object once per kill point, with and without a response. Returns the
/// number of kill points.
async fn kill_once_on_each_way(operator: &mut Revived<'_>, most: usize, before: &Snapshot) -> usize {
    let mut points = 0;
    for number in 1..=most {
        for hears in [Hears::Nothing, Hears::TheAnswer] {
            let began = Instant::now();
            let (writes, killed) = operator.on_and_off(Kills::After(number, hears), before).await;
            let seconds = began.elapsed().as_secs_f64();
            println!("killed after write {number} of {writes} ({hears:?}): {seconds:.1} s");
            if killed == 0 {
                return points;
            }
            points += 1;
        }
    }
    points
}
