"""What runs a deployment: one PodCliqueSet, or LeaderWorkerSets and Deployments."""
