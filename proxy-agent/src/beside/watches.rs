//! The watches of mode Beside: the Services to serve, their slices, and the node. Selectors follow
//! the view, so a node gets no event of other Services.

use std::collections::BTreeSet;

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, pending, select_all};
use isp_client::{Collected, events, named, watching};
use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::watcher::Event;
use kube::{Api, Client};

use super::known::{Covered, Known, Part, ServiceListing, SliceListing, Wanted};

/// Up to so many names, the API server selects the slices. With more, the request would get too
/// long, and the agent watches all slices.
const MOST_NAMES: usize = 200;

/// The watches, and what they have told.
pub(crate) struct Watches {
    client: Client,
    pub(crate) known: Known,
    nodes: Collected<Node>,
    node_name: String,
    wanted: Option<Wanted>,
    /// One watch for each label key.
    services: Vec<ServiceWatch>,
    covers: Option<Covered>,
    /// The version of the names when the watch of slices was chosen.
    names_version: u64,
    slices: BoxStream<'static, Event<EndpointSlice>>,
    slice_listing: SliceListing,
    node_events: BoxStream<'static, Event<Node>>,
}

/// A watch of Services.
struct ServiceWatch {
    events: BoxStream<'static, Event<Service>>,
    listing: ServiceListing,
}

impl Watches {
    pub(crate) fn new(client: Client, node_name: String) -> Self {
        let node_events = events(Api::<Node>::all(client.clone()), named(&node_name)).boxed();
        Self {
            client,
            known: Known::default(),
            nodes: Collected::default(),
            node_name,
            wanted: None,
            services: Vec::new(),
            covers: None,
            names_version: 0,
            slices: pending().boxed(),
            slice_listing: SliceListing::new(Covered::Named(BTreeSet::new())),
            node_events,
        }
    }

    /// Whether the node has been read.
    pub(crate) fn knows_node(&self) -> bool {
        self.nodes.complete().is_some()
    }

    /// The node, if it exists.
    pub(crate) fn node(&self) -> Option<&Node> {
        self.nodes.complete()?.get(&self.node_name)
    }

    /// Watches these Services from now on.
    pub(crate) fn follow(&mut self, wanted: Wanted) {
        if self.wanted.as_ref() == Some(&wanted) {
            return;
        }
        let parts = wanted.parts();
        self.known.keep_watches(&parts.iter().map(Part::key).collect());
        let mut running = std::mem::take(&mut self.services);
        for part in &parts {
            let place = running.iter().position(|watch| watch.listing.part() == part);
            let watch = place.map_or_else(|| self.watch(part), |place| running.swap_remove(place));
            self.services.push(watch);
        }
        self.wanted = Some(wanted);
        self.cover();
    }

    fn watch(&self, part: &Part) -> ServiceWatch {
        let mut config = watching();
        if let Some(selector) = part.selector() {
            config = config.labels(&selector);
        }
        let events = events(Api::<Service>::all(self.client.clone()), config).boxed();
        ServiceWatch { events, listing: ServiceListing::new(part.clone()) }
    }

    /// Whether the Services that are followed now have been listed, with their slices.
    pub(crate) fn is_complete(&self) -> bool {
        let mut services = self.services.iter();
        self.wanted.is_some() && services.all(|watch| watch.listing.is_complete()) && self.known.is_complete()
    }

    /// Waits for the next event and folds it in. Cancel safe.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            Some((place, event)) = next_of(&mut self.services) => {
                self.known.fold_service(&mut self.services[place].listing, event);
                if self.known.names_version() != self.names_version {
                    self.cover();
                }
            }
            Some(event) = self.slices.next() => self.known.fold_slice(&mut self.slice_listing, event),
            Some(event) = self.node_events.next() => drop(self.nodes.fold(event, |node| node)),
        }
    }

    /// Lets the watch of slices follow the names of the Services.
    fn cover(&mut self) {
        self.names_version = self.known.names_version();
        let names = self.known.names();
        let covers = if self.wanted == Some(Wanted::All) || names.len() > MOST_NAMES {
            Covered::All
        } else {
            Covered::Named(names.cloned().collect())
        };
        // A watch of all slices stays until few are left, so that it does not start again and again
        // at the limit.
        let stays = self.covers == Some(Covered::All)
            && matches!(&covers, Covered::Named(names) if names.len() > MOST_NAMES / 2);
        if stays || self.covers.as_ref() == Some(&covers) {
            return;
        }
        self.slices = match &covers {
            Covered::Named(names) if names.is_empty() => pending().boxed(),
            Covered::Named(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let selector =
                    format!("{} in ({})", isp_intake::services::SERVICE_NAME_LABEL, names.join(","));
                events(Api::<EndpointSlice>::all(self.client.clone()), watching().labels(&selector)).boxed()
            }
            Covered::All => events(Api::<EndpointSlice>::all(self.client.clone()), watching()).boxed(),
        };
        self.slice_listing = SliceListing::new(covers.clone());
        self.covers = Some(covers);
    }
}

/// The next event of one of the watches, with the watch's place.
async fn next_of(watches: &mut [ServiceWatch]) -> Option<(usize, Event<Service>)> {
    let watches = watches.iter_mut().enumerate();
    select_all(watches.map(|(place, watch)| watch.events.by_ref().map(move |event| (place, event))))
        .next()
        .await
}
