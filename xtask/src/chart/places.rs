//! Where the chart's values go: which text of which files is replaced by what.

/// What is installed besides where cert-manager makes the webhook's certificate.
pub(super) const CERTIFICATES: &str = "manifests/overlays/cert-manager/certificates.yaml";

/// Text that is replaced wherever it is, in the files of some directory, or in all.
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
/// `.Values.program` stands for the values of the directory's program.
pub(super) const PROGRAMS: [(&str, &str); 2] =
    [("manifests/base/", ".Values.operator"), ("manifests/webhook/", ".Values.webhook")];

pub(super) const PLACES: &[Place] = &[
    place(EVERYWHERE, "namespace: sourcepreserve-system\n", "namespace: {{ .Release.Namespace | quote }}\n"),
    place(EVERYWHERE, "namespace: kube-system\n", "namespace: {{ .Values.kubeProxy.namespace | quote }}\n"),
    // In a name of the webhook's.
    place(EVERYWHERE, ".sourcepreserve-system.svc", ".{{ .Release.Namespace }}.svc"),
    // In the name of an account.
    place(
        EVERYWHERE,
        "system:serviceaccount:sourcepreserve-system:",
        "system:serviceaccount:{{ .Release.Namespace }}:",
    ),
    // In the words of a definition.
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
        "\nmetadata:\n  annotations:\n    # They outlive the release: all objects would go with them.\n    helm.sh/resource-policy: keep\n",
    ),
    place("manifests/", "\n  replicas: 2\n", "\n  replicas: {{ .Values.program.replicas }}\n"),
    place("manifests/", "args: [run]\n", "args: {{ include \"sourcepreserve.args\" .Values.program }}\n"),
    place(
        "manifests/base/",
        "image: ghcr.io/ingress-source-preserve/operator\n",
        "image: {{ include \"sourcepreserve.image\" (list . .Values.program.image \"operator\") }}\n",
    ),
    place(
        "manifests/base/",
        "value: ghcr.io/ingress-source-preserve/proxy-agent\n",
        "value: {{ include \"sourcepreserve.image\" (list . .Values.agent.image \"proxy-agent\") }}\n\
         \x20       {{- with .Values.imagePullSecrets }}\n\
         \x20       - name: AGENT_PULL_SECRETS\n\
         \x20         value: {{ range $place, $secret := . }}{{ if $place }},{{ end }}{{ $secret.name }}{{ end }}\n\
         \x20       {{- end }}\n",
    ),
    place(
        "manifests/webhook/",
        "image: ghcr.io/ingress-source-preserve/webhook\n",
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
    // The authority of those who may call.
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

/// What the webhook may do where it makes its certificates itself, and where cert-manager does.
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

/// A block that a value replaces as a whole: the line that it begins with.
pub(super) const RESOURCES: &str = "        resources:";

/// What a file is within, when it is not always there.
pub(super) const CONDITIONS: [(&str, &str); 5] = [
    ("crds/", ".Values.crds.install"),
    ("disruption.yaml", "gt (int .Values.program.replicas) 1"),
    (CERTIFICATES, BY_CERT_MANAGER),
    ("webhook/secret.yaml", BY_THE_WEBHOOK),
    ("network.yaml", ".Values.networkPolicy.install"),
];
