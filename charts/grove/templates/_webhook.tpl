{{/*
One webhook configuration, equal to what src/grove/webhooks/registrations.py builds.

It has no caBundle unless the values set one: only the operator then owns that field, and neither Helm's three-way
merge nor a server-side apply changes it.
*/}}
{{- define "grove.webhook" }}
{{- $top := .top }}
{{- $own := index $top.Values.webhooks (.values | default "none") | default dict }}
apiVersion: admissionregistration.k8s.io/v1
kind: {{ .kind }}WebhookConfiguration
metadata:
  name: {{ .name }}
  labels:
    {{- include "grove.labelsWith" (list $top $top.Values.webhooks.labels $own.labels) | nindent 4 }}
  {{- with include "grove.annotations" (list $top $top.Values.webhooks.annotations $own.annotations) }}{{ . | nindent 2 }}{{ end }}
webhooks:
  {{- include "grove.webhookEntry" . }}
  {{- with .deletions }}
  {{- include "grove.webhookEntry" (merge . $) }}
  {{- end }}
{{- end }}

{{- define "grove.webhookEntry" }}
{{- $top := .top }}
  - name: {{ .webhook }}
    admissionReviewVersions: [v1]
    clientConfig:
      service:
        namespace: {{ $top.Release.Namespace }}
        name: {{ include "grove.name" $top }}
        path: {{ .path }}
        port: {{ $top.Values.config.server.webhooks.port }}
      {{- with $top.Values.webhooks.caBundle }}
      caBundle: {{ . }}
      {{- end }}
    failurePolicy: {{ .failurePolicy | default "Fail" }}
    matchPolicy: Exact
    {{- if eq .kind "Mutating" }}
    reinvocationPolicy: IfNeeded
    {{- end }}
    sideEffects: None
    timeoutSeconds: {{ .timeoutSeconds | default 5 }}
    matchConditions:
      {{- if .managedOnly }}
      - name: not-being-deleted
        expression: oldObject == null || !has(oldObject.metadata.deletionTimestamp)
      {{- else }}
      - name: not-being-deleted-or-spec-changed
        expression: oldObject == null || !has(oldObject.metadata.deletionTimestamp) || (object != null && object.spec != oldObject.spec)
      {{- end }}
      - name: not-by-the-operator
        expression: request.userInfo.username != "system:serviceaccount:{{ $top.Release.Namespace }}:{{ include "grove.account" $top }}"
      {{- with .exempt }}
      - name: not-by-exempt-users
        expression: {{ printf "!(request.userInfo.username in %s)" (toRawJson .) | squote }}
      {{- end }}
    {{- with $top.Values.namespaces }}
    namespaceSelector:
      matchExpressions:
        - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}
    {{- end }}
    {{- if .managedOnly }}
    objectSelector:
      matchLabels:
        app.kubernetes.io/managed-by: grove-operator
    {{- end }}
    rules:
      {{- range .rules }}
      - apiGroups: [{{ .group | quote }}]
        apiVersions: {{ .versions | default (list "v1alpha1") | toJson }}
        operations: {{ .operations | toJson }}
        resources: {{ .resources | toJson }}
        scope: {{ .scope | default "Namespaced" }}
      {{- end }}
{{- end }}
