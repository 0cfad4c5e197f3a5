{{- /* An image, from a list: the context, its whole reference if one is set, its name. */ -}}
{{- define "sourcepreserve.image" -}}
{{- $context := index . 0 -}}
{{- $image := $context.Values.image -}}
{{- index . 1 | default (printf "%s/%s:%s" $image.registry (index . 2) ($image.tag | default $context.Chart.AppVersion)) -}}
{{- end -}}

{{- /* The arguments of a program, from its values. How it logs comes before what it does. */ -}}
{{- define "sourcepreserve.args" -}}
{{- $args := list "run" -}}
{{- if eq (.certificates | default "own") "cert-manager" -}}
{{- $args = append $args "--certificates=secret" -}}
{{- $args = append $args "--secret=sourcepreserve-webhook-tls" -}}
{{- end -}}
{{- with .callers -}}
{{- if .configMap -}}
{{- $args = append $args "--client-ca=/client-ca/ca.crt" -}}
{{- range .names }}{{ $args = append $args (printf "--client-name=%s" .) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $args = concat $args .extraArgs -}}
{{- with .logLevel }}{{ $args = prepend $args (printf "--log-level=%s" .) }}{{ end -}}
{{- with .logFormat }}{{ $args = prepend $args (printf "--log-format=%s" .) }}{{ end -}}
{{- toJson $args -}}
{{- end -}}

{{- /* Where its pods may run and how much they matter, from its values. */ -}}
{{- define "sourcepreserve.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- /* The API servers as peers of a NetworkPolicy, from a list of ranges. */ -}}
{{- define "sourcepreserve.apiServers" -}}
{{- range . }}
- ipBlock:
    cidr: {{ . | quote }}
{{- end }}
{{- end -}}
