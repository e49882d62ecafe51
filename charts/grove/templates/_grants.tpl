{{/*
Rules for workloads: a ClusterRole, or with `namespaces` a Role in each of them, without what has no namespace. Call with
(dict "top" $ "name" ... "rules" <yaml>), and with what "grove.grant" has besides.
*/}}
{{- define "grove.grantWorkloads" }}
{{- if not .top.Values.namespaces }}
{{- include "grove.grant" (merge (dict "kind" "ClusterRole") .) }}
{{- else }}
{{- $rules := list }}
{{- range fromYamlArray .rules }}
{{- if not (has (first .resources) (include "grove.clusterScoped" $ | fromJsonArray)) }}
{{- $rules = append $rules . }}
{{- end }}
{{- end }}
{{- range $index, $namespace := .top.Values.namespaces }}
{{- if $index }}
---
{{- end }}
{{- include "grove.grant" (merge (dict "kind" "Role" "namespace" $namespace "rules" (toYaml $rules)) $) }}
{{- end }}
{{- end }}
{{- end }}

{{/* What operator and webhooks of some namespaces read in the cluster, because it has no namespace. They write none of it. */}}
{{- define "grove.clusterReadRules" -}}
{{- $all := include "grove.clusterRules" . | fromYamlArray }}
{{- if .Values.config.dynamo.enabled }}
{{- $all = concat $all (include "grove.dynamoRules" . | fromYamlArray) }}
{{- end }}
{{- if include "grove.admissionApart" . }}
{{- $all = concat $all (include "grove.admissionRules" . | fromYamlArray) }}
{{- end }}
{{- $rules := list }}
{{- range $all }}
{{- if has (first .resources) (include "grove.clusterScoped" $ | fromJsonArray) }}
{{- $rules = append $rules (set . "verbs" (without .verbs "patch")) }}
{{- end }}
{{- end }}
{{- toYaml (uniq $rules) }}
{{- end }}

{{/* The resources without a namespace in the rules above; each rule has only such resources, or none. */}}
{{- define "grove.clusterScoped" -}}
["clustertopologies", "customresourcedefinitions", "mutatingwebhookconfigurations", "validatingwebhookconfigurations", "nodes", "priorityclasses", "queues", "resourceslices"]
{{- end }}

{{/* Fails if `namespaces` is set with something that needs rights in the whole cluster. */}}
{{- define "grove.requireNamespaced" }}
{{- if .Values.namespaces }}
{{- $config := .Values.config }}
{{- $why := "needs the whole cluster: it is not possible with namespaces" }}
{{- if $config.topologyAwareScheduling.enabled }}
{{- fail (printf "config.topologyAwareScheduling.enabled %s" $why) }}
{{- end }}
{{- if $config.network.autoMNNVLEnabled }}
{{- fail (printf "config.network.autoMNNVLEnabled %s" $why) }}
{{- end }}
{{- if $config.dynamo.topologyAwareScheduling.mode }}
{{- fail (printf "config.dynamo.topologyAwareScheduling.mode %s" $why) }}
{{- end }}
{{- $mode := include "grove.defaultSchedulerConfig" . | fromYaml | dig "placement" "Off" | toString }}
{{- if not (has $mode (list "Off" "false")) }}
{{- fail (printf "placement of default-scheduler in config.scheduler.profiles %s" $why) }}
{{- end }}
{{- if and .Values.webhooks.enabled (not (include "grove.certificatesByHand" .)) }}
{{- fail "with namespaces the operator may not write the certificate authority into webhook configurations: set config.server.webhooks.certProvisionMode to manual, and webhooks.caBundle or an annotation of cert-manager in webhooks.annotations" }}
{{- end }}
{{- end }}
{{- end }}

{{/* A role and its binding to the operator's ServiceAccount, or to other "accounts". "key": where upstream's values have labels of the role. */}}
{{- define "grove.grant" }}
{{- range list .kind (printf "%sBinding" .kind) }}
{{- $values := index $.top.Values (printf "%s%s" ($.key | default "none") (trimPrefix $.kind .)) }}
{{- if ne . $.kind }}
---
{{- end }}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ . }}
metadata:
  name: {{ $.name }}
  {{- with $.namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "grove.labelsWith" (list $.top ($values).labels) | nindent 4 }}
  {{- with include "grove.annotations" (list $.top) }}{{ . | nindent 2 }}{{ end }}
{{- if eq . $.kind }}
rules:
  {{- $.rules | nindent 2 }}
{{- else }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $.kind }}
  name: {{ $.name }}
subjects:
  {{- range $.accounts | default (list (include "grove.account" $.top)) }}
  - kind: ServiceAccount
    name: {{ . }}
    namespace: {{ $.top.Release.Namespace }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
