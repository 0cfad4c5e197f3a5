//! The texts after the options in `--help`: examples and exit codes.

pub(super) const EXAMPLES: &str = "\
Examples:
  kubectl isp check                 what loses the source IP, and an object to cure it
  kubectl isp status                state of all objects
  kubectl isp status web --watch    state of one object, again on every change
  kubectl isp plan -f web.yaml      changes that applying the file would cause
  kubectl isp explain-node work-1   Services that a node may see, and the reason
  kubectl isp doctor                faults that lose the source IP, and remedies
  kubectl isp report -f web.yaml    a page with all paths, before and after
  kubectl isp rules web/frontend-1  packet rules of a running pod, explained
  kubectl isp probe --service web/frontend
                                    source IPs that arrive, by real connections
  kubectl isp trace --from 203.0.113.5 --to svc/web/frontend
                                    a packet's way through the cluster, hop by hop

Exit codes:
  0  no problem
  1  an error: the cluster cannot be read, or there is no such object
  2  check: an exposed Service loses the source IP, or a policy misjudges
     status: an object shown is not Ready, or no operator runs
     plan: an object of the file would not become Ready
     explain-node: the node is not as it should be
     doctor: there are errors or warnings
     rules: the rules are not what the pod's manifest says, loop, or leave something out
     probe: a source IP is lost, or a connection is not as expected
     trace: the packet is lost, or arrives without its source IP
  3  plan --exit-code: applying the file would change something

Environment:
  KUBECONFIG              the kubeconfig, as for kubectl
  LC_ALL, LC_CTYPE, LANG  with UTF-8, conditions are \u{2714} and \u{2716}, else ok and no
  COLUMNS                 the width for wrapped lines, else the terminal's
  NO_COLOR                no colours";

pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  kubectl isp check
  kubectl isp check --service istio-system/istio-ingressgateway
  kubectl isp check --write isp.yaml
  kubectl isp check -o json | jq -r '.fit.mode'
  kubectl isp check -o sarif > isp.sarif
  kubectl isp check --from-dir dump     # `kubectl isp doctor --help` shows how to take a dump

It works before anything of this project is installed, and only reads. The right to list services
is mandatory; it says which other rights are missing, and what it cannot tell without them.

Exit code 0: nothing is lost, 2: a line is marked as failed (a Service loses the source IP, a policy
misjudges, or that cannot be told), 1: the cluster or the dump cannot be read.";

pub(super) const DOCTOR_EXAMPLES: &str = "\
Examples:
  kubectl isp doctor
  kubectl isp doctor --service istio-system/istio-ingressgateway
  kubectl isp doctor -o json | jq -r '.findings[].code'

  kubectl get isp,isn,services,endpointslices,nodes,namespaces,pods,daemonsets,deployments,networkpolicies,ingresses -A -o yaml > dump/core.yaml
  kubectl get configmap -n kube-system kube-proxy -o yaml > dump/kube-proxy.yaml
  kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations -o yaml > dump/webhooks.yaml
  kubectl get authorizationpolicies,envoyfilters,virtualservices,gateways.networking.istio.io -A -o yaml > dump/istio.yaml
  kubectl get configmaps -A -l istio.io/rev -o yaml > dump/mesh.yaml
  kubectl version -o yaml > dump/version.yaml
  kubectl isp doctor --from-dir dump

Exit code 0: no errors and no warnings, 2: errors or warnings, 1: the cluster or the dump cannot be read.";

pub(super) const PLAN_EXAMPLES: &str = "\
Examples:
  kubectl isp plan -f web.yaml
  kubectl isp plan -f web.yaml -o json | jq -r '.steps[].actions[] | .action + \" \" + .object'
  kubectl get isp web -o yaml | sed 's/ClusterOnly/Hidden/' | kubectl isp plan -f -

The operator's own code makes the plan, on a copy of the cluster in memory. There
every agent starts, every write is accepted, and nobody else changes anything.
Nothing is written to the cluster. Exit code 2: an object of the file would not
become Ready. With --exit-code, 3: applying the file would change something.

A plan without access to the cluster:
  kubectl get isp,isn,services,endpointslices,nodes,namespaces,pods,daemonsets,deployments -A --show-managed-fields -o yaml > dump/core.yaml
  kubectl get configmap -n kube-system kube-proxy -o yaml > dump/kube-proxy.yaml
  kubectl get serviceaccounts,clusterroles,clusterrolebindings -A --show-managed-fields -o yaml > dump/accounts.yaml
  kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings --show-managed-fields -o yaml > dump/admission.yaml
  kubectl isp plan -f web.yaml --from-dir dump --exit-code";

pub(super) const EXPLAIN_NODE_HELP: &str = "\
Examples:
  kubectl isp explain-node work-1
  kubectl isp explain-node work-1 -o json | jq -r '.behind[]'

Exit code 0: the node is as it should be, 2: it is not ready, or its agent is missing, failed or behind, 1: there is no such node.";

pub(super) const REPORT_EXAMPLES: &str = "\
Examples:
  kubectl isp report                              writes isp-report.html
  kubectl isp report -f web.yaml                  compares with the state after the file is applied
  kubectl isp report --service web/frontend -o -  one Service, to standard output
  kubectl isp report --from-dir dump              from a dump, see `kubectl isp doctor --help`
  kubectl isp report serve                        live, on http://127.0.0.1:8090/

The page is one file. It needs no network, and it contains the names and addresses of the cluster:
send it only to people who may know them.

Exit code 0: the page was written, 1: the cluster or the dump cannot be read.";

pub(super) const RULES_EXAMPLES: &str = "\
Examples:
  kubectl isp rules web/frontend-1
  kubectl isp rules web/frontend-1 --packet 'tcp 203.0.113.5 -> :8080'
  kubectl isp rules web/frontend-1 --packet 'tcp uid 1000 -> 198.51.100.7:443'
  kubectl isp rules web/frontend-1 -o json | jq -r .mode

A packet is a protocol, its source, and its destination. Without a source, or with uid, gid or
mark, a process of the pod sends it. Without a destination address, it is for the pod.

A helper pod on the node of the pod reads the rules. It ends by itself, and this command
deletes it, also when it is interrupted. The pod itself is not touched.

Exit code 0: the rules are as the pod's manifest says, 2: they are not, they loop, or they leave
something out, 1: they could not be read.";

pub(super) const PROBE_EXAMPLES: &str = "\
Examples:
  kubectl isp probe --service web/frontend
  kubectl isp probe --service web/frontend --yes --save before.json
  kubectl apply -f web.yaml
  kubectl wait --for=condition=Ready isp/web
  kubectl isp probe --service web/frontend --yes --compare before.json
  kubectl isp probe --service istio-system/istio-ingressgateway --target own --yes

Short-lived pods connect to every address of the target: from the network of pods and from
that of nodes, on the nodes with endpoints and on two others. The target is a canary: our echo
program behind a Service of the same shape, in the same namespace. With --target own it is the
Service itself, and the source IP is read from the access log of its pods.

The command says what it will create, and asks. It deletes everything at the end, also when it
is interrupted. Pods that a killed command leaves behind end after eight minutes.

Exit code 0: every source IP arrives and every connection is as expected, 2: not so, 1: the
cluster could not be probed.";

pub(super) const TRACE_EXAMPLES: &str = "\
Examples:
  kubectl isp trace --from 203.0.113.5 --to svc/istio-system/istio-ingressgateway:443
  kubectl isp trace --from 203.0.113.5 --to 192.0.2.10:443 --via edge-1
  kubectl isp trace --from pod/web/frontend-1 --to node/work-1:30080
  kubectl isp trace --from node/work-1 --to '[2001:db8::10]:443' -o json | jq -r '.paths[].outcome.result'
  kubectl isp trace --from 203.0.113.5 --to svc/web/frontend --from-dir dump

From outside, a Service is reached at its external addresses, or at the NodePort of each node if it
has none. From inside, it is reached at its ClusterIP. `kubectl isp doctor --help` shows how to take
a dump.

Exit code 0: every way leads to its end with the source IP; traffic of the cluster itself may have an
address of its own node. 2: a way loses the source IP, is refused or dropped, or is unclear. 1: the
cluster or the dump cannot be read, or does not have what is asked for.";
