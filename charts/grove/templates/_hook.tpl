{{/*
A Job that Helm runs as a hook, with a ServiceAccount that exists only as long as the Job.
Call with (dict "top" $ "name" ... "events" ... "args" (list ...) "rules" <yaml> "namespaces" (list ...)). With namespaces
it has the rules in these only.
*/}}
{{- define "grove.hook" }}
{{- $top := .top }}
{{- $metadata := dict "top" $top "name" .name "events" .events }}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "grove.hookMetadata" (merge (dict "weight" "-20" "namespaced" true) $metadata) | nindent 2 }}
automountServiceAccountToken: false
{{- range .namespaces | default (list "") }}
{{- $kind := . | empty | ternary "ClusterRole" "Role" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  {{- include "grove.hookMetadata" (merge (dict "weight" "-20" "clusterName" true "in" .) $metadata) | nindent 2 }}
rules:
  {{- $.rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  {{- include "grove.hookMetadata" (merge (dict "weight" "-19" "clusterName" true "in" .) $metadata) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: grove:system:{{ $.name }}
subjects:
  - kind: ServiceAccount
    name: {{ $.name }}
    namespace: {{ $top.Release.Namespace }}
{{- end }}
---
apiVersion: batch/v1
kind: Job
metadata:
  {{- include "grove.hookMetadata" (merge (dict "weight" "0" "namespaced" true) $metadata) | nindent 2 }}
spec:
  backoffLimit: 3
  activeDeadlineSeconds: 240
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {{ .name }}
        {{- include "grove.commonLabels" $top | nindent 8 }}
        {{- with $top.Values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with include "grove.annotations" (list $top $top.Values.jobs.podAnnotations) }}{{ . | nindent 6 }}{{ end }}
    spec:
      serviceAccountName: {{ .name }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      restartPolicy: Never
      {{- with $top.Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- include "grove.placement" $top | nindent 6 }}
      containers:
        - name: {{ .name }}
          image: {{ include "grove.image" (list $top $top.Values.image) }}
          imagePullPolicy: {{ $top.Values.image.pullPolicy }}
          command: [grove]
          args: {{ .args | toJson }}
          resources:
            {{- toYaml $top.Values.resources | nindent 12 }}
          securityContext:
            {{- toYaml $top.Values.securityContext | nindent 12 }}
{{- end }}

{{- define "grove.hookMetadata" -}}
name: {{ if .clusterName }}grove:system:{{ end }}{{ .name }}
{{- if .namespaced }}
namespace: {{ .top.Release.Namespace }}
{{- else if .in }}
namespace: {{ .in }}
{{- end }}
labels:
  app.kubernetes.io/name: {{ .name }}
  {{- include "grove.commonLabels" .top | nindent 2 }}
{{ include "grove.annotations" (list .top (dict
    "helm.sh/hook" .events
    "helm.sh/hook-weight" .weight
    "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded")) }}
{{- end }}
