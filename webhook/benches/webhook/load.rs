//! Load: h2load sends reviews over TLS and HTTP/2 on persistent connections, like API servers, and
//! records the duration of each.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use crate::figures::{Usage, stolen};
use crate::server::Server;

/// Time to open the connections. It is not measured.
const WARM_UP: Duration = Duration::from_secs(2);
const MOST_THREADS: u32 = 16;
/// Sampling interval, long enough not to affect the measurement.
const LOOK: Duration = Duration::from_millis(500);

/// The cores of the server and the generator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cores {
    pub(crate) server: usize,
    pub(crate) generator: usize,
}

impl Cores {
    /// The first two cores that this process may use.
    pub(crate) fn choose() -> Self {
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let mut cores = (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap());
        let server = cores.next().unwrap();
        let generator = cores.next().unwrap_or_else(|| panic!("a server and a generator need a core each"));
        Self { server, generator }
    }
}

/// The rate and the connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) connections: u32,
    /// Over all connections. None: each connection sends its next review after a response.
    pub(crate) per_second: Option<u32>,
}

impl fmt::Display for Pace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.per_second {
            Some(rate) => write!(out, "{rate} reviews a second, connections: {}", self.connections),
            None => write!(out, "as many as possible, connections: {}", self.connections),
        }
    }
}

pub(crate) struct Generator {
    pub(crate) program: PathBuf,
    pub(crate) body: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) core: usize,
}

impl Generator {
    /// Sends reviews for this long. Every response must be correct.
    pub(crate) fn run(&self, server: &Server, pace: Pace, duration: Duration) -> Load {
        let before = server.counts();
        // h2load appends to an existing log.
        let _ = fs::remove_file(&self.log);
        let mut command = Command::new("setpriv");
        command.args([
            "--pdeathsig=KILL",
            "--",
            "nice",
            "-n-20",
            "taskset",
            "--cpu-list",
            &self.core.to_string(),
        ]);
        command
            .arg(&self.program)
            .args(["--header=content-type: application/json", "--data"])
            .arg(&self.body);
        command.arg("--log-file").arg(&self.log).arg(format!("--clients={}", pace.connections));
        command.arg(format!("--warm-up-time={}ms", WARM_UP.as_millis()));
        command.arg(format!("--duration={}ms", duration.as_millis()));
        if let Some(rate) = pace.per_second {
            command.arg(format!("--rps={}", f64::from(rate) / f64::from(pace.connections)));
            // One thread per connection: connections of one thread send simultaneously and then
            // wait for each other. With hundreds of threads h2load never ends.
            command.arg(format!("--threads={}", pace.connections.min(MOST_THREADS)));
        }
        let mut child =
            command.arg(server.url()).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut looks = vec![Look::at(server)];
        while child.try_wait().unwrap().is_none() {
            std::thread::sleep(LOOK);
            looks.push(Look::at(server));
        }
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(" 0 failed, 0 errored, 0 timeout"), "{said}");
        assert!(said.contains(" 0 3xx, 0 4xx, 0 5xx"), "{said}");

        let reviews: Vec<Review> = fs::read_to_string(&self.log).unwrap().lines().map(Review::read).collect();
        assert!(!reviews.is_empty(), "{said}");
        let (after, answered) = (server.counts(), Load::number(reviews.len()));
        assert!(after.right - before.right >= answered, "{answered} reviews: {before:?}, {after:?}");
        // At the end h2load aborts one review on each connection.
        let left = if server.counts_leavers { f64::from(pace.connections) } else { 0.0 };
        assert!(after.wrong - before.wrong <= left, "{before:?}, {after:?}");
        Load::of(&reviews, &looks, duration)
    }
}

/// A line of h2load's log.
#[derive(Debug, Clone, Copy)]
struct Review {
    ended: Duration,
    took: Duration,
}

impl Review {
    fn read(line: &str) -> Self {
        let fields: Vec<i64> = line.split('\t').map(|field| field.parse().unwrap()).collect();
        let [start, status, took] = fields[..] else { panic!("h2load wrote {line:?}") };
        // A review that was answered at the end of the warm-up has no status.
        assert!([200, 0].contains(&status), "h2load wrote {line:?}");
        let micros = |count: i64| Duration::from_micros(count.try_into().unwrap());
        Self { ended: micros(start + took), took: micros(took) }
    }
}

/// A sample of the server's resources.
struct Look {
    time: Duration,
    usage: Usage,
    stolen: Duration,
}

impl Look {
    fn at(server: &Server) -> Self {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Self { time, usage: Usage::of(server.process()), stolen: stolen() }
    }
}

/// The resources between the first and the last sample, while the server was busy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watched {
    reviews: f64,
    span: Duration,
    ran: Duration,
    /// Time in the run queue.
    waited: Duration,
    /// Time stolen by the hypervisor, over all cores.
    stolen: Duration,
}

impl Watched {
    /// CPU time per review, in milliseconds.
    pub(crate) fn processor(self) -> f64 {
        self.ran.as_secs_f64() * 1000.0 / self.reviews
    }

    /// The part of the time that the server ran, in percent.
    pub(crate) fn busy(self) -> f64 {
        self.ran.as_secs_f64() / self.span.as_secs_f64() * 100.0
    }

    /// The part of the time that the server waited for a core, in percent.
    pub(crate) fn kept_waiting(self) -> f64 {
        self.waited.as_secs_f64() / self.span.as_secs_f64() * 100.0
    }

    /// The part of a core that the hypervisor stole, in percent.
    pub(crate) fn stolen(self) -> f64 {
        self.stolen.as_secs_f64() / self.span.as_secs_f64() * 100.0
    }
}

/// The results of one or more rounds.
#[derive(Debug)]
pub(crate) struct Load {
    /// In milliseconds.
    times: Vec<f64>,
    /// The 99th percentile of each second.
    seconds: Vec<f64>,
    duration: Duration,
    pub(crate) watched: Watched,
    /// The largest sample, in MB of 1,000,000 bytes, and the anonymous part of it.
    pub(crate) memory: f64,
    pub(crate) own_memory: f64,
}

impl Load {
    pub(crate) const NONE: Self = Self {
        times: Vec::new(),
        seconds: Vec::new(),
        duration: Duration::ZERO,
        watched: Watched {
            reviews: 0.0,
            span: Duration::ZERO,
            ran: Duration::ZERO,
            waited: Duration::ZERO,
            stolen: Duration::ZERO,
        },
        memory: 0.0,
        own_memory: 0.0,
    };

    fn of(reviews: &[Review], looks: &[Look], duration: Duration) -> Self {
        let first = reviews.iter().map(|review| review.ended).min().unwrap_or_default();
        let last = reviews.iter().map(|review| review.ended).max().unwrap_or_default();
        let mut within = looks.iter().filter(|look| (first..=last).contains(&look.time));
        let watched = match (within.next(), within.next_back()) {
            (Some(from), Some(to)) => {
                let span = from.time..to.time;
                let count = reviews.iter().filter(|review| span.contains(&review.ended)).count();
                Watched {
                    reviews: Self::number(count),
                    span: to.time.saturating_sub(from.time),
                    ran: to.usage.ran.saturating_sub(from.usage.ran),
                    waited: to.usage.waited.saturating_sub(from.usage.waited),
                    stolen: to.stolen.saturating_sub(from.stolen),
                }
            }
            _ => panic!("too short to look at: give ISP_BENCH_SECONDS a larger value"),
        };
        let mut this = Self::NONE;
        let most = |of: fn(&Usage) -> f64| looks.iter().map(|look| of(&look.usage)).fold(0.0, f64::max);
        let (memory, own_memory) = (most(|usage| usage.resident), most(|usage| usage.own));
        let millis = |review: &Review| review.took.as_secs_f64() * 1000.0;
        let times = reviews.iter().map(millis).collect();
        let mut seconds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for review in reviews {
            seconds.entry(review.ended.saturating_sub(first).as_secs()).or_default().push(millis(review));
        }
        let seconds = seconds.into_values().map(|times| quantile(times, 0.99)).collect();
        this.add(Self { times, seconds, duration, watched, memory, own_memory });
        this
    }

    fn number(count: usize) -> f64 {
        f64::from(u32::try_from(count).unwrap())
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.times.extend(other.times);
        self.seconds.extend(other.seconds);
        self.duration += other.duration;
        self.watched.reviews += other.watched.reviews;
        self.watched.span += other.watched.span;
        self.watched.ran += other.watched.ran;
        self.watched.waited += other.watched.waited;
        self.watched.stolen += other.watched.stolen;
        self.memory = self.memory.max(other.memory);
        self.own_memory = self.own_memory.max(other.own_memory);
    }

    /// In milliseconds.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        quantile(self.times.clone(), part)
    }

    /// The median over all seconds of their 99th percentiles. Disturbances of a few seconds do not
    /// affect it.
    pub(crate) fn p99_of_a_second(&self) -> f64 {
        quantile(self.seconds.clone(), 0.5)
    }

    pub(crate) fn per_second(&self) -> f64 {
        Self::number(self.times.len()) / self.duration.as_secs_f64()
    }
}

fn quantile(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index within the list")]
    let index = (Load::number(values.len() - 1) * part).round() as usize;
    values[index]
}
