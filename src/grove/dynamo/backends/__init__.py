"""Backends of a graph: one PodCliqueSet (`grove`), or LeaderWorkerSets and Deployments (`lws`)."""
