//! The `echo` application on a lab: deploying it, sending requests to it, and parsing its answers.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Lab, LabError, Place, wait_until};
use crate::command::Output;
use crate::images::{ECHO_IMAGE, echo_program};

const RUNNING_DEADLINE: Duration = Duration::from_mins(1);

/// The protocol of a request to the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// An HTTP/1.1 request.
    Http,
    /// A raw TCP connection.
    Tcp,
    /// A UDP datagram.
    Udp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The application answered.
    Seen(Seen),
    /// No answer, with the reason: `timed out`, `refused`, `unreachable`, `status 503`, ….
    Silent(String),
}

/// The request as the application saw it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    /// The peer's address.
    pub peer_ip: IpAddr,
    /// The pod that answered.
    #[serde(default)]
    pub pod: String,
    /// The node that the pod runs on.
    #[serde(default)]
    pub node: String,
    /// The request headers, with lower-case names.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

impl Answer {
    /// Parses the output of a single `echo ask`.
    pub(crate) fn read(output: &Output) -> Self {
        let value: Value = serde_json::from_str(output.stdout.trim()).unwrap_or_default();
        if let Some(error) = value.get("error").and_then(Value::as_str) {
            return Self::Silent(error.to_owned());
        }
        let complaint = || output.stderr.trim().to_owned();
        serde_json::from_value(value).map_or_else(|_| Self::Silent(complaint()), Self::Seen)
    }

    /// The peer's address as the application saw it.
    pub fn peer(&self) -> Option<IpAddr> {
        match self {
            Self::Seen(seen) => Some(seen.peer_ip),
            Self::Silent(_) => None,
        }
    }

    /// The first address of `X-Forwarded-For`: the client's address as the first proxy saw it.
    pub fn forwarded_for(&self) -> Option<IpAddr> {
        let Self::Seen(seen) = self else { return None };
        seen.headers.get("x-forwarded-for")?.split(',').next()?.trim().parse().ok()
    }
}

/// The application as one pod on one node, with a Service of type NodePort.
#[derive(Debug, Clone)]
pub struct EchoApp<'a> {
    /// The name of the pod and of the Service.
    pub name: &'a str,
    /// The namespace, which must exist.
    pub namespace: &'a str,
    /// The node to run on.
    pub node: &'a str,
    /// The node port for HTTP. TCP uses the next port, UDP the one after that.
    pub node_port: u16,
    /// The pod's annotations.
    pub annotations: &'a [(&'a str, &'a str)],
}

impl EchoApp<'_> {
    fn objects(&self) -> Value {
        let Self { name, namespace, node, node_port, annotations } = self;
        let annotations: BTreeMap<_, _> = annotations.iter().copied().collect();
        let field = |variable: &str, path: &str| json!({"name": variable, "valueFrom": {"fieldRef": {"fieldPath": path}}});
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}, "annotations": annotations},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": node},
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "echo",
                    "image": ECHO_IMAGE,
                    "imagePullPolicy": "Never",
                    "env": [
                        field("POD_NAME", "metadata.name"),
                        field("POD_NAMESPACE", "metadata.namespace"),
                        field("POD_IP", "status.podIP"),
                        field("NODE_NAME", "spec.nodeName"),
                    ],
                    // A machine without CPU time for a few seconds must not make the application
                    // unready.
                    "readinessProbe": {
                        "httpGet": {"path": "/healthz", "port": 8080},
                        "periodSeconds": 1,
                        "timeoutSeconds": 30,
                    },
                }],
            },
        });
        let port = |name: &str, protocol: &str, offset: u16| {
            json!({
                "name": name,
                "protocol": protocol,
                "port": 80 + offset,
                "targetPort": 8080 + offset,
                "nodePort": node_port + offset,
            })
        };
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "type": "NodePort",
                "ipFamilyPolicy": "PreferDualStack",
                "selector": {"app": name},
                "ports": [port("http", "TCP", 0), port("tcp", "TCP", 1), port("udp", "UDP", 2)],
            },
        });
        json!({"apiVersion": "v1", "kind": "List", "items": [pod, service]})
    }
}

impl Lab {
    /// Deploys the application and waits until it is ready.
    pub async fn run_echo(&self, app: &EchoApp<'_>) -> Result<(), LabError> {
        self.apply(&app.objects().to_string()).await?;
        let pods: Api<Pod> = Api::namespaced(self.client(), app.namespace);
        wait_until("the echo application", RUNNING_DEADLINE, || async {
            let status = pods.get(app.name).await?.status.unwrap_or_default();
            let ready = status
                .conditions
                .iter()
                .flatten()
                .any(|condition| condition.type_ == "Ready" && condition.status == "True");
            Ok((!ready).then(|| format!("pod {} is {}", app.name, status.phase.unwrap_or_default())))
        })
        .await
    }

    /// Sends one request from a place to `target`: host and port, and for HTTP optionally a path.
    /// Times out after 2 s.
    pub async fn ask(&self, place: &Place, protocol: Protocol, target: &str) -> Result<Answer, LabError> {
        let program = echo_program()?.display().to_string();
        let protocol = protocol.to_string();
        let mut arguments = vec![program.as_str(), "ask", &protocol];
        match target.find('/').map(|path| target.split_at(path)) {
            Some((target, path)) => arguments.extend([target, "--path", path]),
            None => arguments.push(target),
        }
        let output = self.exec(place, &arguments).await?;
        Ok(Answer::read(&output))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stdout: &str, stderr: &str) -> Answer {
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        Answer::read(&Output { stdout, stderr, success: true, code: Some(0) })
    }

    #[test]
    fn an_answer_a_silence_and_nonsense_are_told_apart() {
        let seen = read(
            r#"{"peerIp":"10.0.0.1","node":"a","headers":{"x-forwarded-for":"192.0.2.1, 10.0.0.9"}}"#,
            "",
        );
        assert_eq!(seen.peer(), Some([10, 0, 0, 1].into()));
        assert_eq!(seen.forwarded_for(), Some([192, 0, 2, 1].into()));
        assert_eq!(read(r#"{"error":"timed out"}"#, "").clone(), Answer::Silent("timed out".to_owned()));
        assert_eq!(read("", "no such file\n"), Answer::Silent("no such file".to_owned()));
    }
}
