"""Renders a graph as Kubernetes objects: PodCliqueSets, pods, containers, Services, RBAC."""
