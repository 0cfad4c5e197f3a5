//! A watch of one object by name.

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use kube::runtime::watcher::Event;
use kube::{Api, ResourceExt};

use isp_client::{Change, Listing, Watched, events, named};

/// The last known state of the object.
#[derive(Debug)]
pub(crate) enum Known<K> {
    /// The first list is not complete yet.
    Unread,
    /// The object does not exist.
    Absent,
    Present(K),
}

pub(crate) struct NamedObject<K> {
    events: BoxStream<'static, Event<K>>,
    known: Known<K>,
    listing: Listing<K>,
}

impl<K: Watched> NamedObject<K> {
    pub(crate) fn new(api: Api<K>, name: &str) -> Self {
        Self { events: events(api, named(name)).boxed(), known: Known::Unread, listing: Listing::default() }
    }

    pub(crate) fn known(&self) -> &Known<K> {
        &self.known
    }

    /// Waits for the next change. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        loop {
            let Some(event) = self.events.next().await else {
                // A watch never ends.
                return std::future::pending().await;
            };
            if self.fold(event) {
                return;
            }
        }
    }

    /// Takes the response to a write. The watch reports the same later.
    pub(crate) fn take_answer(&mut self, object: Option<K>) {
        self.known = object.map_or(Known::Absent, Known::Present);
    }

    fn fold(&mut self, event: Event<K>) -> bool {
        match self.listing.fold(event, |object| object) {
            None => false,
            Some(Change::Listed(objects)) => {
                self.known = objects.into_iter().next_back().map_or(Known::Absent, Known::Present);
                true
            }
            Some(Change::Applied(object)) => self.unless_outdated(object, Known::Present),
            Some(Change::Deleted(object)) => self.unless_outdated(object, |_| Known::Absent),
        }
    }

    /// Ignores events that are older than a response that was already taken.
    fn unless_outdated(&mut self, object: K, known: impl FnOnce(K) -> Known<K>) -> bool {
        if let Known::Present(newer) = &self.known
            && version(newer) > version(&object)
        {
            return false;
        }
        self.known = known(object);
        true
    }
}

/// Resource versions of one kind are comparable. One that is not a number compares as oldest.
fn version<K: Watched>(object: &K) -> Option<u64> {
    object.resource_version()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;
    use kube::core::ObjectMeta;

    use super::*;

    fn secret(version: &str) -> Secret {
        let metadata = ObjectMeta { resource_version: Some(version.to_owned()), ..ObjectMeta::default() };
        Secret { metadata, ..Secret::default() }
    }

    fn one() -> NamedObject<Secret> {
        NamedObject {
            events: futures_util::stream::pending().boxed(),
            known: Known::Unread,
            listing: Listing::default(),
        }
    }

    fn seen(one: &NamedObject<Secret>) -> String {
        match one.known() {
            Known::Unread => "nothing".to_owned(),
            Known::Absent => "absent".to_owned(),
            Known::Present(object) => object.resource_version().unwrap(),
        }
    }

    #[test]
    fn nothing_is_known_before_the_list_has_ended() {
        let mut one = one();
        for event in [Event::Init, Event::InitApply(secret("3"))] {
            assert!(!one.fold(event));
            assert_eq!(seen(&one), "nothing");
        }
        assert!(one.fold(Event::InitDone));
        assert_eq!(seen(&one), "3");
        assert!(!one.fold(Event::Init));
        assert!(one.fold(Event::InitDone));
        assert_eq!(seen(&one), "absent", "a list without it");
    }

    #[test]
    fn what_a_watch_tells_of_earlier_times_is_not_heard() {
        let mut one = one();
        one.take_answer(Some(secret("10")));
        assert!(!one.fold(Event::Apply(secret("9"))));
        assert!(!one.fold(Event::Delete(secret("9"))));
        assert_eq!(seen(&one), "10");
        assert!(one.fold(Event::Apply(secret("10"))));
        assert!(one.fold(Event::Delete(secret("11"))));
        assert_eq!(seen(&one), "absent");
        assert!(one.fold(Event::Apply(secret("12"))));
        assert_eq!(seen(&one), "12");
    }
}
