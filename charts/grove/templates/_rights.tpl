{{/*
The RBAC rules of the operator: docs/rights.md lists them with reasons, and a test compares both with the answers of
the API server. The verbs are those that it uses: it patches objects and never replaces them (update).
*/}}
{{- define "grove.clusterRules" -}}
- apiGroups: [grove.io]
  resources: [podcliquesets]
  verbs: [get, list, watch, patch]
- apiGroups: [grove.io]
  resources: [podcliques, podcliquescalinggroups]
  verbs: [get, list, watch, create, patch, delete]
{{- if or .Values.config.topologyAwareScheduling.enabled .Values.config.dynamo.enabled }}
# Levels of topology constraints.
- apiGroups: [grove.io]
  resources: [clustertopologies, clustertopologybindings]
  verbs: [get, list, watch]
{{- end }}
{{- if .Values.config.topologyAwareScheduling.enabled }}
- apiGroups: [grove.io]
  resources: [clustertopologies/status, clustertopologybindings/status]
  verbs: [patch]
{{- end }}
- apiGroups: [grove.io]
  resources: [podcliquesets/status, podcliques/status, podcliquescalinggroups/status]
  verbs: [patch]
# To set blockOwnerDeletion in owner references, where OwnerReferencesPermissionEnforcement is enabled.
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
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch, delete]
{{- if .Values.config.startOrder.enabled }}
# Only to be granted to init containers that wait for other pods: RBAC lets no one grant rights they do not have.
- apiGroups: [""]
  resources: [pods/status]
  verbs: [get, list, watch]
{{ include "grove.accountRules" . }}
{{- end }}
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch, create, patch, delete]
# Claims that pods share; their templates can be in any namespace.
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaimtemplates]
  verbs: [get, list, watch]
# Which ones exist: pods cannot be created with others.
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [get, list, watch]
# To resume creation when a quota has room.
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
{{- if not (include "grove.admissionApart" .) }}
{{- include "grove.webhookConfigurationRules" . }}
{{- end }}
# Node labels for topologies; accelerators and channels for automatic domains.
{{- if or .Values.config.topologyAwareScheduling.enabled .Values.config.network.autoMNNVLEnabled }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
{{- end }}
# The domain objects of each vendor whose fabric is managed. Cliques may request one in any cluster.
{{- $fabrics := include "grove.fabrics" . | fromJsonArray }}
{{- if has "nvidia" $fabrics }}
- apiGroups: [resource.nvidia.com]
  resources: [computedomains]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
# To count how many pods can be in domains at once.
{{- if $fabrics }}
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
{{- if .Values.config.topologyAwareScheduling.enabled }}
- apiGroups: [kai.scheduler]
  resources: [topologies]
  verbs: [get, list, watch, create, patch, delete]
# To set blockOwnerDeletion on a scheduler's topology object, as above.
- apiGroups: [grove.io]
  resources: [clustertopologies/finalizers, clustertopologybindings/finalizers]
  verbs: [update]
{{- end }}
{{- end }}
{{- range .Values.config.scheduler.profiles }}
{{- if and (eq .name "default-scheduler") (dig "config" "gangScheduling" false .) }}
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups]
  verbs: [get, list, watch, create, patch, delete]
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

{{/* ServiceAccounts with roles and tokens: for init containers of start orders, and for the pods of deployments. */}}
{{- define "grove.accountRules" -}}
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, create, patch, delete]
# Created and never read: the control plane writes the token, and pods mount the Secret.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, delete]
{{- end }}

{{/* Further rules to place gangs: what the scheduler knows about nodes and pods, and nominations of pods. */}}
{{- define "grove.placementRules" -}}
# To nominate pods to nodes.
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [nodes, resourcequotas]
  verbs: [get, list, watch]
# What pods need besides the resources of nodes; read once a gang has claims on devices, or on volumes.
- apiGroups: [resource.k8s.io]
  resources: [deviceclasses, resourceslices]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [persistentvolumes, persistentvolumeclaims]
  verbs: [get, list, watch]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses]
  verbs: [get, list, watch]
{{- end }}

{{/* To notice restarts of the scheduler. */}}
{{- define "grove.schedulerLeaseRules" -}}
{{- $config := include "grove.defaultSchedulerConfig" . | fromYaml }}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ dig "schedulerLease" "name" "kube-scheduler" $config }}]
  verbs: [get, list, watch]
{{- end }}

{{/* Further rules for DynamoGraphDeployments. */}}
{{- define "grove.dynamoRules" -}}
{{- if not .Values.config.startOrder.enabled }}
{{- include "grove.accountRules" . }}
{{- end }}
# The planner of a deployment is granted the right to patch it, and RBAC lets no one grant rights they do not have.
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
# Only to be granted to planners.
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
# Of deployments with an endpoint picker, which is granted the right to read them.
- apiGroups: [inference.networking.k8s.io]
  resources: [inferencepools]
  verbs: [get, list, watch, create, patch]
{{- if and .Values.config.dynamo.withoutGrove (eq .Values.config.dynamo.topologyAwareScheduling.mode "affinity") }}
# To find out whether topology domains exist.
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
{{- end }}
{{- if and .Values.config.dynamo.withoutGrove (eq .Values.config.dynamo.topologyAwareScheduling.mode "kueue") }}
- apiGroups: [kueue.x-k8s.io]
  # Workloads: why Kueue does not admit pods.
  resources: [topologies, workloads]
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
# Only to be granted to the pods of deployments, which discover each other this way.
- apiGroups: [""]
  resources: [endpoints]
  verbs: [get, list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch]
- apiGroups: [nvidia.com]
  resources: [dynamoworkermetadatas]
  verbs: [get, list, watch, create, update, patch, delete]
{{- if not (include "grove.admissionApart" .) }}
{{- include "grove.graphWebhookConfigurationRules" . }}
{{- end }}
{{- end }}

{{/* To find image pull secrets. RBAC has no rule by type of Secret, so this applies to all Secrets. */}}
{{- define "grove.pullSecretRules" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [list, watch]
{{- end }}

{{/* To review who reads metrics. */}}
{{- define "grove.metricsRules" -}}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}

{{/* The right to create Leases, and to get and change only the operator's own. */}}
{{- define "grove.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ .Values.config.leaderElection.resourceName }}]
  verbs: [get, list, watch, patch]
{{- end }}
