{{- define "headrace.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "headrace.operator" -}}{{ include "headrace.name" . }}-operator{{- end -}}
{{- define "headrace.webhook" -}}{{ include "headrace.name" . }}-webhook{{- end -}}
{{- define "headrace.certificate" -}}{{ include "headrace.name" . }}-webhook-certificate{{- end -}}

{{- define "headrace.serviceAccount" -}}
{{- if not (or .Values.serviceAccount.create .Values.serviceAccount.name) -}}
{{- fail "serviceAccount.name: required where serviceAccount.create is false" -}}
{{- end -}}
{{- default (include "headrace.operator" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "headrace.selector" -}}
app.kubernetes.io/name: headrace-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "headrace.labels" -}}
{{ include "headrace.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: headrace
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* An image reference out of (dict "image" VALUES "version" appVersion). */}}
{{- define "headrace.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ default .version .image.tag }}
{{- end -}}
{{- end -}}

{{/* The pods that the webhook and the policy behind it are about. */}}
{{- define "headrace.selectors" -}}
objectSelector:
  matchExpressions:
  - {key: headrace.dev/input, operator: Exists}
{{ include "headrace.namespaces" . }}
{{- end -}}

{{/* Those in which the webhook does anything. */}}
{{- define "headrace.namespaces" -}}
namespaceSelector:
  matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: {{ append .Values.webhook.excludedNamespaces .Release.Namespace | uniq | toJson }}
{{- end -}}

{{/* Whether there is something for `helm test`: its pod needs a namespace that the webhook does not leave alone. */}}
{{- define "headrace.testable" -}}
{{- and .Values.helmTest.enabled (not (has .Values.helmTest.namespace (append .Values.webhook.excludedNamespaces .Release.Namespace))) -}}
{{- end -}}
