{{/* The name is fixed: webhooks, certificates and users of upstream's chart depend on it, and a cluster has one Grove. */}}
{{- define "grove.name" -}}
grove-operator
{{- end }}

{{- define "grove.account" -}}
{{ .Values.serviceAccount.name }}
{{- end }}

{{- define "grove.selector" -}}
app.kubernetes.io/name: {{ include "grove.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* "yes" if the webhooks have a Deployment of their own. */}}
{{- define "grove.admissionApart" -}}
{{- if .Values.admission.separate }}yes{{ end }}
{{- end }}

{{- define "grove.admissionName" -}}
grove-admission
{{- end }}

{{/*
The pods of the webhooks have the labels of the operator's Service, so that it selects both: only pods with a port
`webhooks` get reviews. That is why an upgrade from operators that served them has no outage.
*/}}
{{- define "grove.admissionSelector" -}}
{{ include "grove.selector" . }}
app.kubernetes.io/component: admission
{{- end }}

{{- define "grove.dashboardName" -}}
grove-dashboard
{{- end }}

{{/* Another name than that of the operator, whose Service and disruption budget must not select it. */}}
{{- define "grove.dashboardSelector" -}}
app.kubernetes.io/name: {{ include "grove.dashboardName" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The labels of the dashboard's objects: those of the release, and its own, which win. Call with (list $ <labels> ...). */}}
{{- define "grove.dashboardLabels" -}}
{{- $top := index . 0 }}
{{- mergeOverwrite (include "grove.labelsWith" . | fromYaml) (include "grove.dashboardSelector" $top | fromYaml) | toYaml }}
{{- end }}

{{/* The metadata of an object of the dashboard. Call with (list $ <annotations> ...). */}}
{{- define "grove.dashboardMetadata" -}}
{{- $top := index . 0 -}}
name: {{ include "grove.dashboardName" $top }}
namespace: {{ $top.Release.Namespace }}
labels:
  {{- include "grove.dashboardLabels" (list $top) | nindent 2 }}
{{- with include "grove.annotations" . }}
{{ . }}
{{- end }}
{{- end }}

{{- define "grove.commonLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "grove.labels" -}}
app.kubernetes.io/name: {{ include "grove.name" . }}
{{ include "grove.commonLabels" . }}
{{- end }}

{{/* The labels of an object: its own, and those of the release, which win. Call with (list $ .Values.its.labels ...). */}}
{{- define "grove.labelsWith" -}}
{{- $all := dict }}
{{- range rest . }}
{{- $all = mergeOverwrite $all (deepCopy (. | default dict)) }}
{{- end }}
{{- mergeOverwrite $all (include "grove.labels" (index . 0) | fromYaml) | toYaml }}
{{- end }}

{{/* `annotations:` of an object: commonAnnotations and its own. Call with (list $ .Values.its.own ...). */}}
{{- define "grove.annotations" -}}
{{- $all := deepCopy (index . 0).Values.commonAnnotations }}
{{- range rest . }}
{{- $all = mergeOverwrite $all (deepCopy (. | default dict)) }}
{{- end }}
{{- with $all -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* An image reference. Call with (list $ .Values.image). As in upstream's chart, a digest may be given as tag. */}}
{{- define "grove.image" -}}
{{- with index . 1 -}}
{{ .repository }}
{{- if .digest }}@{{ .digest }}{{ else if hasPrefix "sha256:" .tag }}@{{ .tag }}{{ else }}:{{ .tag | default (index $ 0).Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/* "yes" if deployment.env has a variable of that name. Call with (list $ "NAME"). */}}
{{- define "grove.hasVariable" -}}
{{- range (index . 0).Values.deployment.env }}
{{- if eq .name (index $ 1) }}yes{{ end }}
{{- end }}
{{- end }}

{{/* The operator's configuration file. As for upstream's operator, what is empty has its default. */}}
{{- define "grove.config" -}}
{{- $config := deepCopy .Values.config }}
{{- range list "certProvisionMode" "secretName" "serverCertDir" }}
{{- if not (index $config.server.webhooks .) }}
{{- $_ := unset $config.server.webhooks . }}
{{- end }}
{{- end }}
{{- $election := $config.leaderElection | default dict }}
{{- if not $election.resourceNamespace }}
{{- $_ := set $config "leaderElection" (merge (dict "resourceNamespace" .Release.Namespace) $election) }}
{{- end }}
{{- with .Values.namespaces }}
{{- $_ := set $config "namespaces" . }}
{{- end }}
{{- merge (dict "apiVersion" "operator.config.grove.io/v1alpha1" "kind" "OperatorConfiguration") $config | toYaml }}
{{- end }}

{{/* The ConfigMap is immutable and its name contains a hash: a changed configuration rolls the Deployment out. */}}
{{- define "grove.configName" -}}
grove-operator-cm-{{ include "grove.config" . | sha256sum | trunc 8 }}
{{- end }}

{{- define "grove.certificatesByHand" -}}
{{- if eq .Values.config.server.webhooks.certProvisionMode "manual" }}yes{{ end }}
{{- end }}

{{- define "grove.certificateSecret" -}}
{{ .Values.config.server.webhooks.secretName | default "grove-webhook-server-cert" }}
{{- end }}

{{- define "grove.certificateDirectory" -}}
{{ .Values.config.server.webhooks.serverCertDir | default "/etc/grove-operator/webhook-certs" }}
{{- end }}

{{/* The vendors whose fabric domains are managed, as a JSON array; null is the default of the operator. */}}
{{- define "grove.fabrics" -}}
{{- if kindIs "invalid" .Values.config.fabrics }}["nvidia"]{{ else }}{{ toJson .Values.config.fabrics }}{{ end }}
{{- end }}

{{/* "yes" if a scheduler profile of that name is configured. Call with (list $ "kai-scheduler"). */}}
{{- define "grove.usesScheduler" -}}
{{- range (index . 0).Values.config.scheduler.profiles }}
{{- if eq .name (index $ 1) }}yes{{ end }}
{{- end }}
{{- end }}

{{/* The config of the profile default-scheduler, as YAML; empty if it is not listed. */}}
{{- define "grove.defaultSchedulerConfig" -}}
{{- range .Values.config.scheduler.profiles }}
{{- if eq .name "default-scheduler" }}{{ toYaml (.config | default dict) }}{{ end }}
{{- end }}
{{- end }}

{{/* "yes" if the operator places gangs. The default is that of the operator; YAML reads Off as false. */}}
{{- define "grove.placesGangs" -}}
{{- $mode := include "grove.defaultSchedulerConfig" . | fromYaml | dig "placement" "All" | toString }}
{{- if not (or .Values.namespaces (has $mode (list "Off" "false"))) }}yes{{ end }}
{{- end }}

{{- define "grove.priorityClass" -}}
{{- if .Values.priorityClass.enabled }}{{ .Values.priorityClass.name }}{{ else }}{{ .Values.priorityClassName }}{{ end }}
{{- end }}

{{/* Spreads pods over hosts and zones. Call with (list $ "name of a selector"). */}}
{{- define "grove.spread" -}}
{{- $top := index . 0 }}
{{- $selector := include (index . 1) $top }}
{{- if kindIs "slice" $top.Values.topologySpreadConstraints }}
{{- toYaml $top.Values.topologySpreadConstraints }}
{{- else }}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- topologyKey: {{ . }}
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  matchLabelKeys: [pod-template-hash]
  labelSelector:
    matchLabels:
      {{- $selector | nindent 6 }}
{{- end }}
{{- end }}
{{- end }}

{{/* The probes of a container with the health port. */}}
{{- define "grove.probes" -}}
{{- if ne (toString .Values.config.server.healthProbes.enable) "false" -}}
startupProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 10
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 2
  timeoutSeconds: 5
{{- end }}
{{- end }}

{{/* Node selection, tolerations, pull secrets and security context of all pods of the chart. */}}
{{- define "grove.placement" -}}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
