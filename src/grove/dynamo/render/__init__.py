"""From a graph to Kubernetes objects: PodCliqueSets, pods, containers, Services, RBAC."""
