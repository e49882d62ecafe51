{{/* The names of the webhook configurations: of sets, topologies and managed objects here, of deployments below. */}}
{{- define "grove.webhookConfigurationRules" }}
{{- $verbs := eq (include "grove.certificatesByHand" .) "yes" | ternary "[get, list, watch]" "[get, list, watch, patch]" }}
# To read and write the caBundle of the webhook configurations.
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [podcliqueset-defaulting-webhook]
  verbs: {{ $verbs }}
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [podcliqueset-validating-webhook, clustertopology-validating-webhook{{ if .Values.config.authorizer.enabled }}, authorizer-webhook{{ end }}]
  verbs: {{ $verbs }}
{{- end }}

{{- define "grove.graphWebhookConfigurationRules" }}
{{- if not .Values.namespaces }}
# To register the conversion webhook.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [dynamographdeployments.nvidia.com]
  verbs: [patch]
{{- end }}
{{- $verbs := eq (include "grove.certificatesByHand" .) "yes" | ternary "[get, list, watch]" "[get, list, watch, patch]" }}
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [dynamographdeployment-defaulting-webhook]
  verbs: {{ $verbs }}
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [dynamographdeployment-validating-webhook]
  verbs: {{ $verbs }}
{{- end }}

{{/* The rules of the webhooks where they have pods of their own: to read what they validate against. */}}
{{- define "grove.admissionRules" -}}
- apiGroups: [grove.io]
  resources: [podcliquesets]
  verbs: [get, list, watch]
{{- if or .Values.config.topologyAwareScheduling.enabled .Values.config.dynamo.enabled }}
- apiGroups: [grove.io]
  resources: [clustertopologies, clustertopologybindings]
  verbs: [get, list, watch]
{{- end }}
- apiGroups: [resource.k8s.io]
  resources: [resourceclaimtemplates]
  verbs: [get, list, watch]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [get]
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [get, list, watch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
{{- include "grove.webhookConfigurationRules" . }}
{{- if .Values.config.dynamo.enabled }}
{{- include "grove.graphWebhookConfigurationRules" . }}
{{- end }}
{{- if or .Values.config.topologyAwareScheduling.enabled .Values.config.network.autoMNNVLEnabled }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
{{- end }}
{{- if has "nvidia" (include "grove.fabrics" . | fromJsonArray) }}
- apiGroups: [resource.nvidia.com]
  resources: [computedomains]
  verbs: [get, list, watch]
{{- end }}
# Channels of nodes, which automatic domains need.
{{- if .Values.config.network.autoMNNVLEnabled }}
- apiGroups: [resource.k8s.io]
  resources: [resourceslices]
  verbs: [list, watch]
{{- end }}
{{- if include "grove.usesScheduler" (list . "volcano") }}
- apiGroups: [scheduling.volcano.sh]
  resources: [queues]
  verbs: [get]
{{- end }}
{{- end }}

{{/* The right to create Secrets, which cannot be limited to a name, and to get and change only the certificate's. */}}
{{- define "grove.certificateRules" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ include "grove.certificateSecret" . }}]
  verbs: [get, patch]
{{- end }}
