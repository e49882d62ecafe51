{{/*
The rules of the dashboard: it reads, and creates the two reviews of its users, which are not stored. docs/rights.md lists
them with reasons, and a test compares them with what it reads. They do not depend on the features of the operator: it
shows what it finds, and may ask for kinds that are not installed. Secrets, ConfigMaps and logs are not among them.
*/}}
{{- define "grove.dashboardRules" -}}
- apiGroups: [grove.io]
  resources: [podcliquesets, podcliques, podcliquescalinggroups]
  verbs: [get, list, watch]
- apiGroups: [scheduler.grove.io]
  resources: [podgangs]
  verbs: [get, list, watch]
- apiGroups: [nvidia.com]
  resources: [dynamographdeployments]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [get, list, watch]
# What plans depend on, which say why a gang waits: as the operator reads it.
- apiGroups: [""]
  resources: [resourcequotas, persistentvolumeclaims]
  verbs: [get, list, watch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings]
  verbs: [get, list, watch]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims, resourceclaimtemplates]
  verbs: [get, list, watch]
- apiGroups: [resource.nvidia.com]
  resources: [computedomains]
  verbs: [get, list, watch]
- apiGroups: [scheduling.run.ai, scheduling.volcano.sh]
  resources: [podgroups]
  verbs: [get, list, watch]
{{- end }}

{{/* What has no namespace and is needed in every installation, and the reviews of users. */}}
{{- define "grove.dashboardClusterRules" -}}
- apiGroups: [grove.io]
  resources: [clustertopologies, clustertopologybindings]
  verbs: [get, list, watch]
- apiGroups: [kai.scheduler]
  resources: [topologies]
  verbs: [get, list, watch]
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [get, list, watch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}

{{/* Whether an operator leads: in the namespace of its Lease. */}}
{{- define "grove.dashboardLeaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ .Values.config.leaderElection.resourceName }}]
  verbs: [get, list, watch]
{{- end }}

{{/* Nodes, and what belongs to them: not for an operator of some namespaces. */}}
{{- define "grove.dashboardNodeRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [persistentvolumes]
  verbs: [get, list, watch]
- apiGroups: [resource.k8s.io]
  resources: [deviceclasses, resourceslices]
  verbs: [get, list, watch]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses]
  verbs: [get, list, watch]
{{- end }}
