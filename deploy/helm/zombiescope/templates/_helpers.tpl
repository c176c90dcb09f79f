{{- define "zombiescope.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "zombiescope.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "zombiescope.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "zombiescope.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "zombiescope.account" -}}
{{- .Values.serviceAccount.name | default (include "zombiescope.fullname" .) -}}
{{- end }}

{{- define "zombiescope.selector" -}}
app.kubernetes.io/name: {{ include "zombiescope.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "zombiescope.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "zombiescope.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: agent
app.kubernetes.io/part-of: {{ include "zombiescope.name" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "zombiescope.image" -}}
{{- $image := .Values.image -}}
{{- with $image.registry }}{{ . }}/{{ end }}{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end }}

{{- define "zombiescope.capabilities" -}}
{{- $added := list (ternary "SYS_ADMIN" "PERFMON" .Values.kernelBefore58) "SYSLOG" "SYS_PTRACE" "DAC_READ_SEARCH" -}}
{{- if .Values.raisePriority }}{{ $added = append $added "SYS_NICE" }}{{ end -}}
[{{ join ", " $added }}]
{{- end }}

{{- define "zombiescope.asksTheCluster" -}}
{{- $ask := .Values.kubernetes -}}
{{- if or $ask.pods $ask.events $ask.conditions }}true{{ end -}}
{{- end }}

{{- define "zombiescope.config" -}}
{{- $chart := dict
  "metrics" (dict "listen" (.Values.metrics.listen | default (printf "0.0.0.0:%v" .Values.metrics.port)) "open" true)
  "recorder" (dict "dir" .Values.stateDir)
  "kubernetes" (dict "enabled" .Values.kubernetes.pods "events" .Values.kubernetes.events "conditions" .Values.kubernetes.conditions "ray" .Values.kubernetes.ray) -}}
{{- if and .Values.runbooks (hasKey .Values.config "webhook") -}}
{{- $_ := set $chart "webhook" (dict "runbooks" (printf "%s/patterns" (trimSuffix "/" .Values.runbooks))) -}}
{{- end -}}
{{- if get (get .Values.config "metrics" | default dict) "token_file" -}}{{- $_ := unset $chart.metrics "open" -}}{{- end -}}
{{- toYaml (mergeOverwrite $chart (deepCopy .Values.config)) -}}
{{- end }}

{{/* Ports of the addresses in the configuration: what a NetworkPolicy has to let out. An address in a Secret is https; an
object store of one's own is an endpoint_override behind the bucket; what is switched off asks nobody. */}}
{{- define "zombiescope.configuredPorts" -}}
{{- $config := .Values.config -}}
{{- $ports := list -}}
{{- range $place := list (list "webhook" "url") (list "profiles" "url") (list "ray" "dashboard") (list "shipping" "target") -}}
{{- $address := get (get $config (first $place) | default dict) (last $place) | default "" | toString | replace "%3A" ":" -}}
{{- $named := regexFind ":[0-9]+([/?&]|$)" $address -}}
{{- if $named -}}{{- $ports = append $ports (int (regexFind "[0-9]+" $named)) -}}
{{- else if or (hasPrefix "http://" $address) (contains "scheme=http&" (printf "%s&" $address)) -}}{{- $ports = append $ports 80 -}}
{{- else if contains "://" $address -}}{{- $ports = append $ports 443 -}}
{{- end -}}
{{- end -}}
{{- $webhook := get $config "webhook" | default dict -}}
{{- if or (get $webhook "url_file") (and (get $webhook "key_file") (not (get $webhook "url"))) -}}{{- $ports = append $ports 443 -}}{{- end -}}
{{- $ray := get $config "ray" | default dict -}}
{{- if and (ne (get $ray "enabled" | toString) "false") (not (get $ray "dashboard")) -}}{{- $ports = append $ports 8265 -}}{{- end -}}
{{- $ports | uniq | toJson -}}
{{- end }}
