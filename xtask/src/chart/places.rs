//! The places of the chart's values: which text in which files is replaced by what.

/// Installed in addition if cert-manager issues the webhook's certificate.
pub(super) const CERTIFICATES: &str = "manifests/overlays/cert-manager/certificates.yaml";

/// Installed in addition if the Prometheus Operator is there.
pub(super) const MONITOR: &str = "manifests/monitoring/pod-monitor.yaml";

/// A text to replace, in the files of one directory or in all.
pub(super) struct Place {
    pub(super) within: &'static str,
    pub(super) find: &'static str,
    pub(super) put: &'static str,
}

const fn place(within: &'static str, find: &'static str, put: &'static str) -> Place {
    Place { within, find, put }
}

const EVERYWHERE: &str = "";
const DEFINITIONS: &str = "crds/";
/// `.Values.program` is replaced by the values of the directory's program.
pub(super) const PROGRAMS: [(&str, &str); 2] =
    [("manifests/base/", ".Values.operator"), ("manifests/webhook/", ".Values.webhook")];

pub(super) const PLACES: &[Place] = &[
    place(EVERYWHERE, "namespace: sourcepreserve-system\n", "namespace: {{ .Release.Namespace | quote }}\n"),
    place(EVERYWHERE, "namespace: kube-system\n", "namespace: {{ .Values.kubeProxy.namespace | quote }}\n"),
    // In a list of namespaces.
    place(EVERYWHERE, "- sourcepreserve-system\n", "- {{ .Release.Namespace | quote }}\n"),
    // In the webhook's DNS name.
    place(EVERYWHERE, ".sourcepreserve-system.svc", ".{{ .Release.Namespace }}.svc"),
    // In a ServiceAccount's user name.
    place(
        EVERYWHERE,
        "system:serviceaccount:sourcepreserve-system:",
        "system:serviceaccount:{{ .Release.Namespace }}:",
    ),
    // In the descriptions of a CRD.
    place(EVERYWHERE, "kube-system", "{{ .Values.kubeProxy.namespace }}"),
    place(
        EVERYWHERE,
        "\nkind: ServiceAccount\n",
        "\nkind: ServiceAccount\n\
         {{- with .Values.imagePullSecrets }}\n\
         imagePullSecrets: {{- toYaml . | nindent 0 }}\n\
         {{- end }}\n",
    ),
    place(
        DEFINITIONS,
        "\nmetadata:\n",
        "\nmetadata:\n  annotations:\n    # The CRDs outlive the release: deleting them would delete all objects.\n    helm.sh/resource-policy: keep\n",
    ),
    place(
        MONITOR,
        "\n    app.kubernetes.io/part-of: ingress-source-preserve\n",
        "\n    app.kubernetes.io/part-of: ingress-source-preserve\n\
         \x20   {{- with .Values.podMonitor.labels }}\n\
         \x20   {{- toYaml . | nindent 4 }}\n\
         \x20   {{- end }}\n",
    ),
    place("manifests/", "\n  replicas: 2\n", "\n  replicas: {{ .Values.program.replicas }}\n"),
    place("manifests/", "args: [run]\n", "args: {{ include \"sourcepreserve.args\" .Values.program }}\n"),
    place(
        "manifests/base/",
        "image: localhost/ingress-source-preserve/operator\n",
        "image: {{ include \"sourcepreserve.image\" (list . .Values.program.image \"operator\") }}\n",
    ),
    place(
        "manifests/base/",
        "value: localhost/ingress-source-preserve/proxy-agent\n",
        "value: {{ include \"sourcepreserve.image\" (list . .Values.agent.image \"proxy-agent\") }}\n\
         \x20       {{- with .Values.imagePullSecrets }}\n\
         \x20       - name: AGENT_PULL_SECRETS\n\
         \x20         value: {{ range $place, $secret := . }}{{ if $place }},{{ end }}{{ $secret.name }}{{ end }}\n\
         \x20       {{- end }}\n",
    ),
    place(
        "manifests/webhook/",
        "value: localhost/ingress-source-preserve/pod-redirect\n",
        "value: {{ include \"sourcepreserve.image\" (list . .Values.redirect.image \"pod-redirect\") }}\n",
    ),
    place(
        "manifests/webhook/",
        "image: localhost/ingress-source-preserve/webhook\n",
        "image: {{ include \"sourcepreserve.image\" (list . .Values.program.image \"webhook\") }}\n",
    ),
    place(
        "manifests/",
        "\n        args: ",
        "\n        {{- with .Values.image.pullPolicy }}\n        imagePullPolicy: {{ . }}\n        {{- end }}\n        args: ",
    ),
    place(
        "manifests/",
        "\n      securityContext:\n        runAsNonRoot",
        "\n      {{- include \"sourcepreserve.scheduling\" .Values.program | nindent 6 }}\n      securityContext:\n        runAsNonRoot",
    ),
    // The CA bundle that client certificates of callers are verified with.
    place(
        "manifests/webhook/",
        "      containers:\n",
        "      {{- with .Values.program.callers.configMap }}\n\
         \x20     volumes:\n\
         \x20     - name: client-ca\n\
         \x20       configMap:\n\
         \x20         name: {{ . }}\n\
         \x20     {{- end }}\n\
         \x20     containers:\n",
    ),
    place(
        "manifests/webhook/",
        "        ports:\n        - name: webhook\n",
        "        {{- if .Values.program.callers.configMap }}\n\
         \x20       volumeMounts:\n\
         \x20       - name: client-ca\n\
         \x20         mountPath: /client-ca\n\
         \x20         readOnly: true\n\
         \x20       {{- end }}\n\
         \x20       ports:\n        - name: webhook\n",
    ),
    place(
        "manifests/webhook/",
        "  - ports:\n    - port: 8443\n",
        "  - ports:\n    - port: 8443\n\
         \x20   {{- with .Values.networkPolicy.apiServers }}\n\
         \x20   from: {{- include \"sourcepreserve.apiServers\" . | nindent 4 }}\n\
         \x20   {{- end }}\n",
    ),
    place(
        "manifests/",
        "  policyTypes: [Ingress]\n",
        "  {{- with .Values.networkPolicy.apiServers }}\n\
         \x20 policyTypes: [Ingress, Egress]\n\
         \x20 egress:\n\
         \x20 - ports: [{protocol: TCP}]\n\
         \x20   to: {{- include \"sourcepreserve.apiServers\" . | nindent 4 }}\n\
         \x20 {{- else }}\n\
         \x20 policyTypes: [Ingress]\n\
         \x20 {{- end }}\n",
    ),
    place(
        "manifests/",
        "\n    metadata:\n      labels: *labels\n",
        "\n    metadata:\n\
         \x20     {{- with .Values.program.podAnnotations }}\n\
         \x20     annotations: {{- toYaml . | nindent 8 }}\n\
         \x20     {{- end }}\n\
         \x20     labels: *labels\n",
    ),
];

/// The webhook's rule for Secrets when it issues its own certificates, and when cert-manager does.
pub(super) const OWN_SECRET: &str = r#"- apiGroups: [""]
  resources: [secrets]
  resourceNames: [sourcepreserve-webhook-ca]
  verbs: [get, list, watch, update]
"#;
pub(super) const GIVEN_SECRET: &str = r#"- apiGroups: [""]
  resources: [secrets]
  resourceNames: [sourcepreserve-webhook-tls]
  verbs: [get, list, watch]
"#;
pub(super) const BY_CERT_MANAGER: &str = r#"eq .Values.webhook.certificates "cert-manager""#;
pub(super) const BY_THE_WEBHOOK: &str = r#"ne .Values.webhook.certificates "cert-manager""#;

/// The first line of a block that a value replaces as a whole.
pub(super) const RESOURCES: &str = "        resources:";

/// Conditions on files that are not always installed.
pub(super) const CONDITIONS: [(&str, &str); 6] = [
    ("crds/", ".Values.crds.install"),
    ("disruption.yaml", "gt (int .Values.program.replicas) 1"),
    (CERTIFICATES, BY_CERT_MANAGER),
    (MONITOR, ".Values.podMonitor.install"),
    ("webhook/secret.yaml", BY_THE_WEBHOOK),
    ("network.yaml", ".Values.networkPolicy.install"),
];
