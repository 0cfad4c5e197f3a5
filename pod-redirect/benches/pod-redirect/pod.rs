//! A fresh network namespace with an interface of both families, as a pod has when its first
//! container starts, and a program that runs in it once.

use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use isp_lab::{End, NetNs};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::figures::MEGABYTE;

/// The duration of a run, and the processor time of all its processes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) elapsed: Duration,
    pub(crate) processor: Duration,
}

pub(crate) struct Pod(NetNs);

impl Pod {
    pub(crate) fn new() -> Self {
        let places = NetNs::new(&["pod", "node"]).unwrap();
        let pod = End { place: "pod", interface: "eth0", addresses: &["10.1.0.2/24", "fd01::2/64"] };
        let node = End { place: "node", interface: "veth0", addresses: &["10.1.0.1/24", "fd01::1/64"] };
        places.cable(pod, node).unwrap();
        Self(places)
    }

    /// Runs a program. Only one program runs at a time, so that the processor time is its own.
    pub(crate) fn time(self, mut command: Command) -> Run {
        self.within(move || {
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let (before, start) = (processor_time(), Instant::now());
            let output = command.output().unwrap();
            let elapsed = start.elapsed();
            assert!(output.status.success(), "{command:?}: {output:?}");
            Run { elapsed, processor: processor_time().saturating_sub(before) }
        })
    }

    /// The peak resident memory of the largest process of a program, in megabytes. It is at
    /// least that of GNU `time`, about 1 MB, which the program's process has before it starts.
    pub(crate) fn peak_memory(self, meter: &Path, program: &Command) -> f64 {
        let mut command = Command::new(meter);
        command.args(["-q", "-f", "%M"]).arg(program.get_program()).args(program.get_args());
        self.within(move || {
            let output = command.output().unwrap();
            assert!(output.status.success(), "{command:?}: {output:?}");
            let printed = String::from_utf8(output.stderr).unwrap();
            // Istio's program may print there, too.
            let kibibytes: f64 = printed.lines().last().unwrap().parse().unwrap();
            kibibytes * 1024.0 / MEGABYTE
        })
    }

    /// Runs a function on a thread in the namespace; programs that it starts are in the namespace,
    /// too.
    fn within<T: Send>(self, work: impl FnOnce() -> T + Send) -> T {
        let entrance = self.0.entrance("pod").unwrap();
        thread::scope(|scope| {
            let thread = scope.spawn(move || {
                entrance.enter().unwrap();
                work()
            });
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}

/// The processor time of all processes that this one has waited for.
fn processor_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let duration = |time: TimeVal| {
        let micros = u64::try_from(time.tv_usec()).unwrap();
        Duration::from_secs(time.tv_sec().try_into().unwrap()) + Duration::from_micros(micros)
    };
    duration(usage.user_time()) + duration(usage.system_time())
}
