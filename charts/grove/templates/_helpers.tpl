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
{{- if not (has $mode (list "Off" "false")) }}yes{{ end }}
{{- end }}

{{- define "grove.priorityClass" -}}
{{- if .Values.priorityClass.enabled }}{{ .Values.priorityClass.name }}{{ else }}{{ .Values.priorityClassName }}{{ end }}
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
