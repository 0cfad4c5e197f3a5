//! The command line. Every argument is parsed into a type here, so the rest of the program sees
//! only valid values.

use std::{
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use clap::{Args, Parser, Subcommand};
use hyper::{header::HeaderValue, http::uri::PathAndQuery};

use crate::{
    ask::{Protocol, Question, Target},
    hold::Held,
    survey::{Destination, Survey},
};

/// Tells every caller which address it came from: the lab's application, its client and its pause
/// program.
#[derive(Debug, Parser)]
#[command(name = "echo", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Serve),
    Ask(Ask),
    Survey(SurveyOptions),
    Hold(Hold),
    /// Wait for SIGTERM or SIGINT and exit with 0: the pause program of pod sandboxes.
    Pause,
}

/// Answer over HTTP, TCP and UDP with the peer's address, the local address, the pod and the node.
///
/// HTTP: every method and path gets a JSON object, which includes the request's headers; /healthz
/// gets "ok"; ?delay=MILLISECONDS (at most 60000) delays the answer.
///
/// With --access-log, each of these requests is a line on stdout, as web servers write it.
///
/// TCP: one JSON line, then every byte is echoed until the caller closes its side.
///
/// UDP: one JSON datagram per datagram.
///
/// Once all sockets are open, a JSON line with their addresses is printed to stdout. The
/// environment (the downward API) describes the pod: `POD_NAME`, `POD_NAMESPACE`, `POD_IP`,
/// `NODE_NAME`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// HTTP port; 0 lets the kernel choose.
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub(crate) http: u16,
    /// TCP port; 0 lets the kernel choose.
    #[arg(long, value_name = "PORT", default_value_t = 8081)]
    pub(crate) tcp: u16,
    /// UDP port; 0 lets the kernel choose.
    #[arg(long, value_name = "PORT", default_value_t = 8082)]
    pub(crate) udp: u16,
    /// Address to listen on; :: accepts IPv4 as well, and IPv4 peers are reported as plain IPv4.
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V6(Ipv6Addr::UNSPECIFIED))]
    pub(crate) address: IpAddr,
    /// Print a line for each HTTP request: the peer's address, the request, the status.
    #[arg(long)]
    pub(crate) access_log: bool,
}

/// Send requests to a server, each over a new connection, and print one JSON line per request.
///
/// A line is the server's answer plus "seq" and "elapsedMs", or {"error": "refused"|"reset"|"timed
/// out"|...} with a "detail". A summary is printed to stderr. The exit code is 0 only if at least
/// one request was sent and all were answered.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "PROTOCOL", subcommand_help_heading = "Protocols")]
pub(crate) struct Ask {
    #[command(subcommand)]
    protocol: AskProtocol,
}

#[derive(Debug, Subcommand)]
enum AskProtocol {
    /// Send an HTTP/1.1 GET; a status other than 2xx counts as failed.
    Http {
        #[command(flatten)]
        common: AskOptions,
        /// Path and query to request.
        #[arg(long, default_value = "/", value_parser = path)]
        path: PathAndQuery,
        /// Host header to send instead of HOST:PORT.
        #[arg(long, value_name = "HOST")]
        host_header: Option<HeaderValue>,
    },
    /// Connect, read the server's line, send a line and wait until it is echoed.
    Tcp {
        #[command(flatten)]
        common: AskOptions,
    },
    /// Send a datagram and wait for the answer.
    Udp {
        #[command(flatten)]
        common: AskOptions,
    },
}

#[derive(Debug, Args)]
struct AskOptions {
    /// The destination; an IPv6 address goes in brackets. A name is resolved for every request, and
    /// its first address is used.
    #[arg(value_name = "HOST:PORT")]
    target: Target,
    /// Number of requests; 0 sends until SIGINT or SIGTERM.
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u64,
    /// Milliseconds between requests, whether or not the last one was answered.
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    interval: u64,
    /// Timeout of a request, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    timeout: u64,
    /// Local address to send from.
    #[arg(long, value_name = "IP")]
    bind: Option<IpAddr>,
}

impl From<Ask> for Question {
    fn from(ask: Ask) -> Self {
        let (protocol, common) = match ask.protocol {
            AskProtocol::Http { common, path, host_header } => (Protocol::Http { path, host_header }, common),
            AskProtocol::Tcp { common } => (Protocol::Tcp, common),
            AskProtocol::Udp { common } => (Protocol::Udp, common),
        };
        Self {
            protocol,
            target: common.target,
            count: common.count,
            interval: Duration::from_millis(common.interval),
            timeout: Duration::from_millis(common.timeout),
            bind: common.bind,
        }
    }
}

/// Ask several servers at once, each until it has answered often enough or the time is up.
///
/// One JSON line per request is printed, as by `ask`, with the "question", counted from 0, and the
/// "own" address. The exit code is 0 even if no server answers.
#[derive(Debug, Args)]
pub(crate) struct SurveyOptions {
    /// What to ask: tcp://HOST:PORT, udp://HOST:PORT, http://HOST:PORT/PATH, or, to open only a
    /// connection, connect://HOST:PORT.
    #[arg(value_name = "DESTINATION", required = true)]
    destinations: Vec<Destination>,
    /// Number of answers that a destination must give.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1000))]
    answers: u64,
    /// Milliseconds after which a destination that does not answer is given up.
    #[arg(long, value_name = "MS", default_value_t = 12_000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    patience: u64,
    /// Milliseconds between an answer and the next request.
    #[arg(long, value_name = "MS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    interval: u64,
    /// Timeout of a request, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    timeout: u64,
}

impl From<SurveyOptions> for Survey {
    fn from(options: SurveyOptions) -> Self {
        let SurveyOptions { destinations, answers, patience, interval, timeout } = options;
        let [patience, interval, timeout] = [patience, interval, timeout].map(Duration::from_millis);
        Self { destinations, answers, patience, interval, timeout }
    }
}

/// Keep one connection open and repeatedly send a line, each of which must be echoed.
///
/// Once the connection is open, the server's greeting line is printed to stdout. If it breaks,
/// {"error": ...} is printed and the exit code is 1. SIGINT or SIGTERM ends it; the exit code is
/// then 0 if at least one line was sent and all were echoed. A summary is printed to stderr.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "PROTOCOL", subcommand_help_heading = "Protocols")]
pub(crate) struct Hold {
    #[command(subcommand)]
    protocol: HoldProtocol,
}

#[derive(Debug, Subcommand)]
enum HoldProtocol {
    /// A raw TCP connection.
    Tcp {
        /// The destination; an IPv6 address goes in brackets.
        #[arg(value_name = "HOST:PORT")]
        target: Target,
        /// Milliseconds between lines.
        #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
        interval: u64,
        /// Milliseconds without an echo until the connection counts as broken.
        #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
        timeout: u64,
        /// Local address to send from.
        #[arg(long, value_name = "IP")]
        bind: Option<IpAddr>,
    },
}

impl From<Hold> for Held {
    fn from(hold: Hold) -> Self {
        let HoldProtocol::Tcp { target, interval, timeout, bind } = hold.protocol;
        let (interval, timeout) = (Duration::from_millis(interval), Duration::from_millis(timeout));
        Self { target, interval, timeout, bind }
    }
}

fn path(text: &str) -> Result<PathAndQuery, String> {
    if !text.starts_with('/') {
        return Err("a path starts with /".to_owned());
    }
    text.parse().map_err(|error: hyper::http::uri::InvalidUri| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn without_arguments_serve_takes_both_families_on_the_known_ports() {
        let Command::Serve(serve) = Cli::parse_from(["echo", "serve"]).command else { panic!("not serve") };
        assert_eq!((serve.http, serve.tcp, serve.udp), (8080, 8081, 8082));
        assert_eq!(serve.address, IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    }

    #[test]
    fn bad_arguments_are_refused() {
        for arguments in [
            &["echo", "ask", "http", "10.0.0.1"][..],
            &["echo", "ask", "http", "10.0.0.1:80", "--path", "x"],
            &["echo", "ask", "http", "10.0.0.1:80", "--host-header", "a\nb"],
            &["echo", "ask", "tcp", "10.0.0.1:80", "--interval", "0"],
            &["echo", "ask", "tcp", "10.0.0.1:80", "--path", "/"],
            &["echo", "ask", "udp", "10.0.0.1:80", "--bind", "here"],
            &["echo", "hold", "tcp", "10.0.0.1"],
            &["echo", "hold", "http", "10.0.0.1:80"],
            &["echo", "serve", "--http", "70000"],
        ] {
            assert!(Cli::try_parse_from(arguments).is_err(), "{arguments:?}");
        }
    }
}
