//! `kubectl isp report serve`: shows the report and reads the cluster again every few seconds. A
//! page that is open follows.
//!
//! The report is confidential, and this server asks nobody who they are. So it listens on the
//! loopback by default, takes requests only by address (another site that points its own name at
//! this server cannot read the page), and answers two paths.

mod answer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use isp_report::Report;
use isp_report::page::{Use, html};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use self::answer::answer;
use super::facts::Source;
use super::fill;
use crate::Outcome;
use crate::cli::ServeArgs;
use crate::error::CommandError;
use crate::output;

/// An open page has one connection for as long as it is open, and others for moments.
const CONNECTIONS: usize = 32;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The page that is shown. A new value announces a new version.
type Shown = watch::Receiver<Arc<String>>;

pub(super) async fn run(source: &Source<'_>, arguments: &ServeArgs) -> Result<Outcome, CommandError> {
    let address = arguments.listen;
    if !address.ip().is_loopback() && !arguments.insecure_listen {
        return Err(CommandError::OpenListen(address));
    }
    let failed = |source| CommandError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let mut report = read(source).await?;
    let (sender, shown) = watch::channel(Arc::new(html(&report, Use::Live)));
    let bound = listener.local_addr().map_err(failed)?;
    output::print(&format!("http://{bound}/\n"))?;
    tokio::select! {
        () = accept(&listener, shown) => {}
        () = refresh(source, arguments, &mut report, &sender) => {}
        stopped = tokio::signal::ctrl_c() => stopped?,
    }
    Ok(Outcome::Fine)
}

async fn read(source: &Source<'_>) -> Result<Report, CommandError> {
    fill::report(&source.read().await?, &source.arguments.service)
}

/// Reads the cluster again and again. A failure leaves the last page.
async fn refresh(
    source: &Source<'_>,
    arguments: &ServeArgs,
    last: &mut Report,
    pages: &watch::Sender<Arc<String>>,
) {
    loop {
        tokio::time::sleep(Duration::from_secs(arguments.interval.into())).await;
        match read(source).await {
            // Nobody needs to know that time goes by.
            Ok(report) if Report { time: last.time.clone(), ..report.clone() } == *last => {}
            Ok(report) => {
                *last = report;
                pages.send_replace(Arc::new(html(last, Use::Live)));
            }
            Err(error) => eprintln!("the page is not current: {error}"),
        }
    }
}

async fn accept(listener: &TcpListener, shown: Shown) {
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        // Callers beyond the limit wait in the kernel's queue.
        let Ok(place) = free.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let shown = shown.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, shown.clone()));
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT).keep_alive(false);
            // A caller that has left is no error.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}

/// Where to listen.
pub(crate) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected ADDRESS:PORT, for example 127.0.0.1:8090".to_owned())
}
