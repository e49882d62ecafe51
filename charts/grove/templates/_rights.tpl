{{/*
What the operator may do, and no more: docs/rights.md lists it with reasons, and a test compares the two with what
the API server answers. Verbs are those that the operator uses; it never replaces an object (update), it patches.
*/}}
{{- define "grove.clusterRules" -}}
- apiGroups: [grove.io]
  resources: [podcliquesets]
  verbs: [get, list, watch, patch]
- apiGroups: [grove.io]
  resources: [podcliques, podcliquescalinggroups]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [grove.io]
  resources: [clustertopologies, clustertopologybindings]
  verbs: [get, list, watch]
- apiGroups: [grove.io]
  resources:
    - podcliquesets/status
    - podcliques/status
    - podcliquescalinggroups/status
    - clustertopologies/status
    - clustertopologybindings/status
  verbs: [patch]
# To name an owner that deletion must wait for, where OwnerReferencesPermissionEnforcement is on.
- apiGroups: [grove.io]
  resources: [podcliquesets/finalizers, podcliques/finalizers, podcliquescalinggroups/finalizers]
  verbs: [update]
- apiGroups: [scheduler.grove.io]
  resources: [podgangs]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [scheduler.grove.io]
  resources: [podgangs/status]
  verbs: [patch]
- apiGroups: [scheduler.grove.io]
  resources: [podgangs/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
# Only to be handed on to init containers that wait for other pods: nobody may grant what they do not have.
- apiGroups: [""]
  resources: [pods/status]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, create, patch, delete]
# Never to be read: the control plane fills them in, and pods mount them.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, delete]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch, create, patch, delete]
# What pods share; the templates of it may be in any namespace.
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaimtemplates]
  verbs: [get, list, watch]
# To go on when a quota has room.
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
{{- $verbs := eq (include "grove.certificatesByHand" .) "yes" | ternary "[get, list, watch]" "[get, list, watch, patch]" }}
# To see whom the API server trusts, and to tell it.
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [podcliqueset-defaulting-webhook]
  verbs: {{ $verbs }}
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [podcliqueset-validating-webhook, clustertopology-validating-webhook, authorizer-webhook]
  verbs: {{ $verbs }}
# Which labels they have, for topologies; whether they are all alike, for automatic domains.
{{- if or .Values.config.topologyAwareScheduling.enabled .Values.config.network.autoMNNVLEnabled }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
{{- end }}
# The domains of each vendor whose fabric is managed. Cliques may ask for one in any cluster.
{{- if has "nvidia" .Values.config.fabrics }}
- apiGroups: [resource.nvidia.com]
  resources: [computedomains]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
# How many pods can be in domains at once.
{{- if .Values.config.fabrics }}
- apiGroups: [resource.k8s.io]
  resources: [resourceslices]
  verbs: [list, watch]
{{- end }}
{{- if .Values.config.network.autoMNNVLEnabled }}
- apiGroups: [resource.k8s.io]
  resources: [deviceclasses]
  verbs: [list]
{{- end }}
{{- if include "grove.usesScheduler" (list . "kai-scheduler") }}
- apiGroups: [scheduling.run.ai]
  resources: [podgroups]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [kai.scheduler]
  resources: [topologies]
  verbs: [get, list, watch, create, patch, delete]
# To name the owner of a scheduler's topology, as above.
- apiGroups: [grove.io]
  resources: [clustertopologies/finalizers, clustertopologybindings/finalizers]
  verbs: [update]
{{- end }}
{{- range .Values.config.scheduler.profiles }}
{{- if and (eq .name "default-scheduler") (dig "config" "gangScheduling" false .) }}
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups]
  verbs: [get, list, watch, create]
{{- end }}
{{- end }}
{{- if include "grove.usesScheduler" (list . "volcano") }}
- apiGroups: [scheduling.volcano.sh]
  resources: [podgroups]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [scheduling.volcano.sh]
  resources: [queues]
  verbs: [get]
{{- end }}
{{- end }}

{{/* What DynamoGraphDeployments take beyond that; Secrets are created by the core already. */}}
{{- define "grove.dynamoRules" -}}
# The planner of a deployment is handed the right to patch it, and nobody may grant what they do not have.
- apiGroups: [nvidia.com]
  resources: [dynamographdeployments]
  verbs: [get, list, watch, patch]
- apiGroups: [nvidia.com]
  resources: [dynamographdeployments/status]
  verbs: [patch]
- apiGroups: [nvidia.com]
  resources: [dynamographdeployments/finalizers]
  verbs: [update]
- apiGroups: [nvidia.com]
  resources: [dynamographdeploymentscalingadapters]
  verbs: [get, list, watch, create, delete]
- apiGroups: [nvidia.com]
  resources: [dynamographdeploymentscalingadapters/status]
  verbs: [patch]
# Only to be handed on to planners.
- apiGroups: [nvidia.com]
  resources: [dynamographdeploymentscalingadapters/scale]
  verbs: [get, update, patch]
- apiGroups: [grove.io]
  resources: [podcliquesets]
  verbs: [create, delete]
- apiGroups: [grove.io]
  resources: [podcliques/scale, podcliquescalinggroups/scale]
  verbs: [patch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, create]
{{- if and .Values.config.dynamo.withoutGrove (eq .Values.config.dynamo.topologyAwareScheduling.mode "affinity") }}
# To tell whether domains exist.
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
{{- end }}
{{- if and .Values.config.dynamo.withoutGrove (eq .Values.config.dynamo.topologyAwareScheduling.mode "kueue") }}
- apiGroups: [kueue.x-k8s.io]
  resources: [topologies]
  verbs: [list, watch]
{{- end }}
{{- if .Values.config.dynamo.withoutGrove }}
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch]
- apiGroups: [leaderworkerset.x-k8s.io]
  resources: [leaderworkersets]
  verbs: [get, list, watch, create, patch]
{{- end }}
# Only to be handed on to the pods of deployments, which find each other that way.
- apiGroups: [""]
  resources: [endpoints]
  verbs: [get, list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch]
- apiGroups: [nvidia.com]
  resources: [dynamoworkermetadatas]
  verbs: [get, list, watch, create, update, patch, delete]
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

{{/* To find those that images are pulled with. Rights know no types of Secrets: these are to all. */}}
{{- define "grove.pullSecretRules" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [list, watch]
{{- end }}

{{/* A lease is made once, and then it is that one. */}}
{{- define "grove.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ .Values.config.leaderElection.resourceName }}]
  verbs: [get, list, watch, patch]
{{- end }}

{{- define "grove.certificateRules" -}}
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ .Values.config.server.webhooks.secretName }}]
  verbs: [get, patch]
{{- end }}

{{/* A role and its binding to the operator's account. */}}
{{- define "grove.grant" }}
{{- range list .kind (printf "%sBinding" .kind) }}
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
    {{- include "grove.labels" $.top | nindent 4 }}
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
  - kind: ServiceAccount
    name: {{ include "grove.account" $.top }}
    namespace: {{ $.top.Release.Namespace }}
{{- end }}
{{- end }}
{{- end }}
