{{- define "zombiescope.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "zombiescope.account" -}}
{{- .Values.serviceAccount.name | default (include "zombiescope.name" .) -}}
{{- end }}

{{- define "zombiescope.selector" -}}
app.kubernetes.io/name: zombiescope
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "zombiescope.labels" -}}
{{ include "zombiescope.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "zombiescope.capabilities" -}}
{{- if .Values.kernelBefore58 }}[SYS_ADMIN, SYSLOG, SYS_PTRACE, DAC_READ_SEARCH]{{ else }}[PERFMON, SYSLOG, SYS_PTRACE, DAC_READ_SEARCH]{{ end -}}
{{- end }}

{{- define "zombiescope.config" -}}
{{- $chart := dict
  "metrics" (dict "listen" (printf "0.0.0.0:%v" .Values.metrics.port) "open" true)
  "recorder" (dict "dir" .Values.stateDir)
  "kubernetes" (dict "enabled" .Values.kubernetes.pods "events" .Values.kubernetes.events "conditions" .Values.kubernetes.conditions "ray" .Values.kubernetes.ray) -}}
{{- toYaml (mergeOverwrite $chart (deepCopy .Values.config)) -}}
{{- end }}
