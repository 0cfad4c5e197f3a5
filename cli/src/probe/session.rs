//! Everything that a run creates: targets, the canary, clients. All of it is deleted whatever
//! happens.
//!
//! Names are chosen and recorded before the requests, so that an object is deleted even if the
//! answer to its creation is lost.

use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use isp_plan::Key;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use tokio::time::{Instant, sleep};

use super::ProbeError;
use super::answers::{self, Answer};
use super::pods::{self, KIND, Network};
use super::question::{Question, external};
use super::subject::{is_ready, slices};
use crate::connection::Connection;
use crate::error::CommandError;
use crate::helper::pods::delete;
use crate::helper::{Goal, Helpers, Interrupt};
use crate::read;

const POLL: Duration = Duration::from_millis(300);
/// How long the operator may take to change the canary, and the endpoints controller to see its
/// pods.
const CONTROLLERS: Duration = Duration::from_mins(1);
/// How long a provider may take to give the canary an address.
const BALANCER: Duration = Duration::from_mins(1);
const NEEDS_RESTRICTED: &str = "it complies with Pod Security restricted, so a policy of the cluster refuses it; probe the Service itself with --target own";
const NEEDS_HOST: &str = "the client needs hostNetwork, so choose a namespace without a Pod Security level, or with level privileged, \
                          with --helper-namespace";

/// A client in the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) node: String,
    pub(crate) network: Network,
    pub(crate) questions: Vec<Question>,
}

/// A client that has ended.
pub(crate) struct Ended {
    /// As it was last seen, with its addresses.
    pub(crate) pod: Pod,
    pub(crate) answers: Vec<Answer>,
}

enum Made {
    Target(String),
    Client(String),
    Service(String),
}

/// What a run has created.
pub(crate) struct Session<'a> {
    connection: &'a Connection,
    interrupt: &'a Interrupt,
    namespace: &'a str,
    targets: Helpers<'a>,
    clients: Helpers<'a>,
    services: Api<Service>,
    image: &'a str,
    made: Vec<Made>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        connection: &'a Connection,
        interrupt: &'a Interrupt,
        namespace: &'a str,
        helper_namespace: &'a str,
        image: &'a str,
    ) -> Self {
        Self {
            connection,
            interrupt,
            namespace,
            targets: Helpers::new(connection, namespace, &KIND, NEEDS_RESTRICTED),
            clients: Helpers::new(connection, helper_namespace, &KIND, NEEDS_HOST),
            services: Api::namespaced(connection.client.clone(), namespace),
            image,
            made: Vec::new(),
        }
    }

    /// Deletes what killed runs have left.
    pub(crate) async fn remove_old(&self, with_canaries: bool) -> Result<(), CommandError> {
        self.clients.remove_old().await?;
        if !with_canaries {
            return Ok(());
        }
        let wanted = ListParams::default().labels(&KIND.selector());
        let now = Timestamp::now();
        for service in read::all(self.connection, self.services.clone(), wanted).await? {
            let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            let is_ours = selector.is_some_and(|selector| {
                KIND.labels().iter().all(|(key, value)| selector.get(key) == Some(value))
            });
            if is_ours && KIND.is_named(&service.metadata) && KIND.is_old(&service.metadata, now) {
                self.delete_service(&service.name_any()).await?;
            }
        }
        self.targets.remove_old().await
    }

    /// Runs a target on each of these nodes and waits until they are ready.
    pub(crate) async fn start_targets(
        &mut self,
        run: &str,
        nodes: &[String],
    ) -> Result<Vec<OwnerReference>, CommandError> {
        let mut names = Vec::new();
        for node in nodes {
            self.interrupt.check()?;
            let name = KIND.new_name();
            self.made.push(Made::Target(name.clone()));
            self.targets.create(&pods::target(&name, run, node, self.image)).await?;
            names.push((name, node));
        }
        let ready = names.iter().map(|(name, node)| self.targets.wait(name, node, Goal::Ready));
        let pods = self.interrupt.or(try_join_all(ready)).await?;
        Ok(pods.iter().filter_map(|pod| pod.owner_ref(&())).collect())
    }

    /// Creates the canary, and waits until it has its endpoints.
    pub(crate) async fn start_canary(
        &mut self,
        canary: &Service,
        endpoints: usize,
    ) -> Result<(), CommandError> {
        self.interrupt.check()?;
        let name = canary.name_any();
        self.made.push(Made::Service(name.clone()));
        let created = self.services.create(&PostParams::default(), canary).await;
        created.map_err(|error| self.problem("create", error))?;
        let key = Key::new(self.namespace, name);
        let (deadline, seconds) = (Instant::now() + CONTROLLERS, CONTROLLERS.as_secs());
        let complete = async {
            loop {
                let slices = slices(self.connection, &key).await?;
                let ready = |family: &str| {
                    let slices = slices.iter().filter(|slice| slice.address_type == family);
                    slices
                        .flat_map(|slice| slice.endpoints.iter().flatten())
                        .filter(|endpoint| is_ready(endpoint))
                        .count()
                };
                if ready("IPv4") >= endpoints || ready("IPv6") >= endpoints {
                    return Ok(());
                }
                if Instant::now() > deadline {
                    let (what, who) = ("its endpoints", "cluster's controller manager");
                    return Err(ProbeError::Late { what, seconds, who }.into());
                }
                sleep(POLL).await;
            }
        };
        self.interrupt.or(complete).await
    }

    /// Waits until the operator has changed the canary as it has changed the user's Service.
    pub(crate) async fn wait_for_operator(&self, name: &str, like: &Service) -> Result<(), CommandError> {
        let (deadline, seconds) = (Instant::now() + CONTROLLERS, CONTROLLERS.as_secs());
        let changed = async {
            while !is_like(&self.canary(name).await?, like) {
                if Instant::now() > deadline {
                    let (what, who) = ("the labels and the policy of the Service", "operator");
                    return Err(ProbeError::Late { what, seconds, who }.into());
                }
                sleep(POLL).await;
            }
            Ok(())
        };
        self.interrupt.or(changed).await
    }

    /// Waits for an external address, and returns the canary. Without one, its other addresses are
    /// probed.
    pub(crate) async fn wait_for_address(&self, name: &str) -> Result<Service, CommandError> {
        let deadline = Instant::now() + BALANCER;
        let addressed = async {
            loop {
                let canary = self.canary(name).await?;
                let type_ = canary.spec.as_ref().and_then(|spec| spec.type_.as_deref());
                if type_ != Some("LoadBalancer") || !external(&canary).is_empty() || Instant::now() > deadline
                {
                    return Ok(canary);
                }
                sleep(POLL).await;
            }
        };
        self.interrupt.or(addressed).await
    }

    async fn canary(&self, name: &str) -> Result<Service, CommandError> {
        self.services.get(name).await.map_err(|error| self.problem("get", error))
    }

    /// Runs clients and waits until they have ended.
    pub(crate) async fn ask(&mut self, clients: &[Client]) -> Result<Vec<Ended>, CommandError> {
        let mut started = Vec::new();
        for client in clients {
            self.interrupt.check()?;
            let name = KIND.new_name();
            let arguments = ["survey".to_owned()].into_iter();
            let arguments = arguments.chain(client.questions.iter().map(Question::argument)).collect();
            self.made.push(Made::Client(name.clone()));
            let pod = pods::client(&name, &client.node, client.network, self.image, arguments);
            self.clients.create(&pod).await?;
            started.push((name, client));
        }
        let ended = started.iter().map(async |(name, client)| {
            let pod = self.clients.wait(name, &client.node, Goal::Succeeded).await?;
            let log = self.clients.log(name).await?;
            Ok(Ended { pod, answers: answers::read(&log, client.questions.len()) })
        });
        self.interrupt.or(try_join_all(ended)).await
    }

    /// Deletes everything. Tries all of it, and returns the first error.
    pub(crate) async fn remove(&self) -> Result<(), CommandError> {
        let deleted = self.made.iter().map(async |made| match made {
            Made::Target(name) => self.targets.delete(name).await,
            Made::Client(name) => self.clients.delete(name).await,
            Made::Service(name) => self.delete_service(name).await,
        });
        join_all(deleted).await.into_iter().collect()
    }

    async fn delete_service(&self, name: &str) -> Result<(), CommandError> {
        delete(&self.services, "service", self.namespace, name, &DeleteParams::default()).await
    }

    fn problem(&self, verb: &'static str, error: kube::Error) -> CommandError {
        self.connection.problem(verb, &read::resource::<Service>(), error)
    }
}

/// Whether the operator has written to the canary what it has written to the user's Service.
fn is_like(canary: &Service, service: &Service) -> bool {
    let label = |of: &Service, key: &str| of.metadata.labels.as_ref().and_then(|all| all.get(key).cloned());
    let policy = |of: &Service| of.spec.as_ref().and_then(|spec| spec.external_traffic_policy.clone());
    let keys = service.metadata.labels.iter().flat_map(|labels| labels.keys());
    let written =
        keys.filter(|key| key.starts_with("sourcepreserve.io/") || key.starts_with("service.kubernetes.io/"));
    written.into_iter().all(|key| label(canary, key) == label(service, key))
        && policy(canary) == policy(service)
}
