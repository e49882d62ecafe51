"""Field paths of a component in the version that it is written in, for errors."""

from __future__ import annotations

from grove.dynamo.graph import GraphComponent


def is_alpha(component: GraphComponent) -> bool:
    """Whether the component is a service of v1alpha1."""
    return component.path.startswith("spec.services")


def pod_spec(component: GraphComponent) -> str:
    """The pod spec."""
    return f"{component.path}.{'extraPodSpec' if is_alpha(component) else 'podTemplate.spec'}"


def main_container(component: GraphComponent) -> str:
    """The container `main`."""
    return f"{pod_spec(component)}.{'mainContainer' if is_alpha(component) else 'containers[main]'}"


def gpus(component: GraphComponent) -> str:
    """The number of GPUs of the container `main`."""
    if is_alpha(component):
        return f"{component.path}.resources.limits.gpu"
    return f"{main_container(component)}.resources.limits[nvidia.com/gpu]"
