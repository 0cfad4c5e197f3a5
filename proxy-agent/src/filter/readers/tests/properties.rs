//! Whatever others do with the agent, and whenever the view changes: kube-proxy never goes on from an older view, and a view counts as read
//! only when kube-proxy has it.

use proptest::prelude::*;

use super::*;

/// A turn of the history.
#[derive(Debug, Clone, Copy)]
enum Turn {
    ViewChanges,
    KubeProxy(Act),
    /// Another client, on one of a few connections.
    Other(ConnectionId, Act),
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Read(ServiceRead),
    /// What was begun last is sent to its end.
    Sent,
    Reconnect,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        prop_oneof![
            Just(ServiceRead::List),
            Just(ServiceRead::NextPage),
            Just(ServiceRead::WatchFromStart),
            Just(ServiceRead::WatchFromVersion),
        ]
        .prop_map(Act::Read),
        Just(Act::Sent),
        Just(Act::Sent),
        Just(Act::Reconnect),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        1 => Just(Turn::ViewChanges),
        4 => act().prop_map(Turn::KubeProxy),
        4 => (0..3_u64, act()).prop_map(|(connection, act)| Turn::Other(connection, act)),
    ]
}

/// A client that does as client-go's reflector does, and what it really has.
#[derive(Debug)]
struct Model {
    client: ClientId,
    /// The read that is under way, and the epoch in which it was begun.
    under_way: Option<(ServiceRead, Epoch)>,
    /// The view that its memory is of.
    has: Option<Epoch>,
    /// Whether it has read a whole view over this connection.
    read_here: bool,
}

impl Model {
    fn new(client: ClientId) -> Self {
        Self { client, under_way: None, has: None, read_here: false }
    }

    fn acts(&mut self, readers: &mut Readers, act: Act, now: Epoch, next: &mut ConnectionId) {
        match act {
            // A watch goes on from what it has; without anything it cannot be asked for.
            Act::Read(ServiceRead::WatchFromVersion) if self.has.is_none() => {}
            Act::Read(read) => match readers.admit(self.client, read, now) {
                Admission::Expired => self.under_way = None,
                Admission::Forward => {
                    if read == ServiceRead::WatchFromVersion {
                        assert_eq!(self.has, Some(now), "{:?} goes on from an older view", self.client);
                        self.read_here = true;
                    }
                    self.under_way = Some((read, now));
                }
            },
            Act::Sent => match self.under_way.take() {
                Some((ServiceRead::List | ServiceRead::NextPage, epoch)) => {
                    readers.list_sent(self.client, delivery(epoch));
                    self.has = Some(epoch);
                }
                // The body of a watch ends with its view.
                Some((ServiceRead::WatchFromStart, epoch)) if epoch == now => {
                    readers.initial_events_sent(self.client, delivery(epoch));
                    (self.has, self.read_here) = (Some(epoch), true);
                }
                _ => {}
            },
            Act::Reconnect => {
                readers.connection_closed(self.client.connection);
                *next += 1;
                self.client.connection = *next;
                (self.under_way, self.read_here) = (None, false);
            }
        }
    }
}

/// Plays a history; `user_agent` is what the others call themselves.
fn play(turns: &[Turn], user_agent: UserAgent) {
    let (mut readers, mut now, mut next) = (Readers::default(), 1, 10);
    let mut kube_proxy = Model::new(kube_proxy(10));
    // It has been there before anybody else.
    readers.admit(kube_proxy.client, ServiceRead::List, 0);
    let mut others: Vec<Model> =
        (0..3).map(|connection| Model::new(ClientId { user_agent, connection })).collect();
    for turn in turns {
        match *turn {
            Turn::ViewChanges => now += 1,
            Turn::KubeProxy(act) => kube_proxy.acts(&mut readers, act, now, &mut next),
            Turn::Other(index, act) => {
                let index = usize::try_from(index).unwrap();
                others[index].acts(&mut readers, act, now, &mut next);
            }
        }
        // One of another name never speaks for it; one of its name not while it is connected.
        let judged = user_agent == UserAgent::Other || kube_proxy.read_here;
        if judged && has(&readers, now) {
            assert_eq!(kube_proxy.has, Some(now), "{turns:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn others_never_make_a_view_count_as_read(turns in prop::collection::vec(turn(), 1..60)) {
        play(&turns, UserAgent::Other);
    }

    #[test]
    fn others_of_its_name_do_not_either_while_it_is_connected(turns in prop::collection::vec(turn(), 1..60)) {
        play(&turns, UserAgent::KubeProxy);
    }
}
