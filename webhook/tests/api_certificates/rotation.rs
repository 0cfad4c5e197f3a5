//! CAs with a lifetime of seconds.

use isp_testkit::until;
use isp_testkit::webhook::{Cluster, Replica};
use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use crate::PROGRAM;
use crate::caller::call;

/// The age of the bundle that callers trust, as if they had read it then.
const BEHIND: Duration = Duration::from_secs(1);
const CAMPAIGN: Duration = Duration::from_secs(45);

#[tokio::test]
async fn no_caller_is_turned_away_while_authorities_follow_each_other() {
    let cluster = Cluster::start(PROGRAM).await;
    let lifetimes = ["--ca-lifetime=18s", "--leaf-lifetime=8s", "--overlap=3s"];
    let replicas = [Replica::start(&cluster, &lifetimes), Replica::start(&cluster, &lifetimes)];
    for replica in &replicas {
        replica.wait_ready().await;
    }
    until("the bundle", async || !cluster.bundle().await.is_empty()).await;

    let started = Instant::now();
    let mut read = VecDeque::new();
    let (mut authorities, mut served, mut calls) = (BTreeSet::new(), BTreeSet::new(), 0);
    while started.elapsed() < CAMPAIGN {
        read.push_back((Instant::now(), cluster.bundle().await));
        authorities.insert(cluster.stored("ca.crt").await);
        // The latest bundle that is old enough.
        while read.get(1).is_some_and(|(time, _)| time.elapsed() >= BEHIND) {
            read.pop_front();
        }
        let (time, bundle) = &read[0];
        if time.elapsed() >= BEHIND {
            for replica in &replicas {
                let certificate = call(replica.address, bundle).await;
                let age = started.elapsed();
                served.insert(certificate.unwrap_or_else(|error| panic!("after {age:?}: {error}")).to_vec());
                calls += 1;
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("{calls} calls, {} authorities, {} certificates", authorities.len(), served.len());
    assert!(calls > 100, "{calls}");
    // A CA every 12 seconds, and a certificate every 6 seconds for each replica: a busy machine has
    // two seconds to replace one before it expires.
    assert!(authorities.len() >= 3, "{}", authorities.len());
    assert!(served.len() >= 12, "{}", served.len());
}
