//! For any history of clients and views: kube-proxy never resumes from an older view, and a view
//! counts as read only if kube-proxy has it.

use proptest::prelude::*;

use super::*;

/// One step of a history.
#[derive(Debug, Clone, Copy)]
enum Step {
    ViewChanges,
    KubeProxy(ClientAction),
    /// An action of another client, on one of a few connections.
    Other(ConnectionId, ClientAction),
}

#[derive(Debug, Clone, Copy)]
enum ClientAction {
    Read(ServiceRead),
    /// The last read is sent completely.
    Sent,
    Reconnect,
}

fn action() -> impl Strategy<Value = ClientAction> {
    prop_oneof![
        prop_oneof![
            Just(ServiceRead::List),
            Just(ServiceRead::NextPage),
            Just(ServiceRead::WatchFromStart),
            Just(ServiceRead::WatchFromVersion),
        ]
        .prop_map(ClientAction::Read),
        Just(ClientAction::Sent),
        Just(ClientAction::Sent),
        Just(ClientAction::Reconnect),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::ViewChanges),
        4 => action().prop_map(Step::KubeProxy),
        4 => (0..3_u64, action()).prop_map(|(connection, action)| Step::Other(connection, action)),
    ]
}

/// A client that behaves like client-go's reflector, and the view that it really has.
#[derive(Debug)]
struct Model {
    client: ClientId,
    /// The read in progress, and the epoch in which it began.
    in_progress: Option<(ServiceRead, Epoch)>,
    /// The view in its cache.
    has: Option<Epoch>,
    /// Whether it has read a whole view over this connection.
    read_here: bool,
}

impl Model {
    fn new(client: ClientId) -> Self {
        Self { client, in_progress: None, has: None, read_here: false }
    }

    fn apply(&mut self, readers: &mut Readers, action: ClientAction, now: Epoch, next: &mut ConnectionId) {
        match action {
            // A client without a list has no version from which to watch.
            ClientAction::Read(ServiceRead::WatchFromVersion) if self.has.is_none() => {}
            ClientAction::Read(read) => match readers.admit(self.client, read, now) {
                Admission::Expired => self.in_progress = None,
                Admission::Forward => {
                    if read == ServiceRead::WatchFromVersion {
                        assert_eq!(self.has, Some(now), "{:?} goes on from an older view", self.client);
                        self.read_here = true;
                    }
                    self.in_progress = Some((read, now));
                }
            },
            ClientAction::Sent => match self.in_progress.take() {
                Some((ServiceRead::List | ServiceRead::NextPage, epoch)) => {
                    readers.list_sent(self.client, delivery(epoch));
                    self.has = Some(epoch);
                }
                // The agent ends a watch when its view changes.
                Some((ServiceRead::WatchFromStart, epoch)) if epoch == now => {
                    readers.initial_events_sent(self.client, delivery(epoch));
                    (self.has, self.read_here) = (Some(epoch), true);
                }
                _ => {}
            },
            ClientAction::Reconnect => {
                readers.connection_closed(self.client.connection);
                *next += 1;
                self.client.connection = *next;
                (self.in_progress, self.read_here) = (None, false);
            }
        }
    }
}

/// Plays a history. The other clients send `user_agent`.
fn play(steps: &[Step], user_agent: UserAgent) {
    let (mut readers, mut now, mut next) = (Readers::default(), 1, 10);
    let mut kube_proxy = Model::new(kube_proxy(10));
    // kube-proxy connects first.
    readers.admit(kube_proxy.client, ServiceRead::List, 0);
    let mut others: Vec<Model> =
        (0..3).map(|connection| Model::new(ClientId { user_agent, connection })).collect();
    for step in steps {
        match *step {
            Step::ViewChanges => now += 1,
            Step::KubeProxy(action) => kube_proxy.apply(&mut readers, action, now, &mut next),
            Step::Other(index, action) => {
                let index = usize::try_from(index).unwrap();
                others[index].apply(&mut readers, action, now, &mut next);
            }
        }
        // A client of another name never counts; one of its name not while it is connected.
        let judged = user_agent == UserAgent::Other || kube_proxy.read_here;
        if judged && has(&readers, now) {
            assert_eq!(kube_proxy.has, Some(now), "{steps:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn others_never_make_a_view_count_as_read(steps in prop::collection::vec(step(), 1..60)) {
        play(&steps, UserAgent::Other);
    }

    #[test]
    fn others_of_its_name_do_not_either_while_it_is_connected(steps in prop::collection::vec(step(), 1..60)) {
        play(&steps, UserAgent::KubeProxy);
    }
}
