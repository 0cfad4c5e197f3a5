//! The capabilities of a pod's processes after its start, from the kernel.

use isp_api::names::REDIRECT_CONTAINER;
use isp_testkit::until;

use crate::harness::{Proxy, World};

/// The application's user in the manifests.
const APPLICATION: &str = "65532";
const NET_ADMIN: u64 = 1 << 12;

/// Prints name, user, effective and bounding capabilities of all processes in a network.
const LIST: &str = r#"
own=$(readlink /proc/self/ns/net)
for process in /proc/[0-9]*; do
  [ "$(readlink $process/ns/net)" = "$own" ] || continue
  awk '/^Name:|^Uid:|^CapEff:|^CapBnd:/ { printf "%s ", $2 } END { print "" }' $process/status
done 2>/dev/null
"#;

#[derive(Debug)]
struct Process {
    name: String,
    user: String,
    effective: u64,
    bounding: u64,
}

fn parse(line: &str) -> Option<Process> {
    let [name, user, effective, bounding] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        return None;
    };
    let set = |digits| u64::from_str_radix(digits, 16).unwrap();
    let (effective, bounding) = (set(effective), set(bounding));
    Some(Process { name: name.to_owned(), user: user.to_owned(), effective, bounding })
}

/// No process has a capability that the author of the pod did not give it, least of all that of the
/// init container.
pub(crate) async fn are_those_of_the_author(world: &World, proxy: &Proxy) {
    let place = world.place(proxy).await;
    let listed = until("both programs run", async || {
        let listed = world.lab.exec(&place, &["bash", "-c", LIST]).await.unwrap().stdout;
        let found: Vec<Process> = listed.lines().filter_map(parse).collect();
        let runs = |name: &str| found.iter().any(|process| process.name == name);
        if runs("echo") && runs(proxy.name) { Ok(found) } else { Err(listed) }
    })
    .await;
    let (mut applications, mut proxies) = (0, 0);
    for process in &listed {
        assert_ne!(process.name, REDIRECT_CONTAINER, "its program has ended");
        if process.name == "echo" {
            // The pause container is the same program.
            assert_eq!((process.effective | process.bounding) & NET_ADMIN, 0, "{process:?}");
            if process.user == APPLICATION {
                assert_eq!((process.effective, process.bounding), (0, 0), "{process:?}");
                applications += 1;
            }
        } else if process.name == proxy.name {
            assert_eq!(process.bounding, proxy.capabilities, "{process:?}");
            assert_eq!(process.effective & !proxy.capabilities, 0, "{process:?}");
            proxies += 1;
        }
    }
    assert!(applications == 1 && proxies >= 1, "{listed:?}");
}
