"""Validation of components that run an engine: its command line, and the GPUs of a multi-node one."""

from __future__ import annotations

from collections.abc import Iterator

from grove.api.field_errors import FieldError, forbidden, invalid, required
from grove.dynamo import keys
from grove.dynamo.admission import field_paths
from grove.dynamo.graph import Graph, GraphComponent
from grove.dynamo.render import command_line, engines, gpu_claims


def errors(graph: Graph, component: GraphComponent) -> Iterator[FieldError]:
    """Errors of a component that runs an engine."""
    if not component.runs_engine:
        return
    command = engines.command_of(component.main)
    started = command_line.detect_frameworks(command)
    if len(started) > 1:
        yield invalid(
            field_paths.main_container(component),
            command.as_text,
            f"starts several engines: {', '.join(started)}",
        )
    elif started and graph.framework in command_line.FRAMEWORKS and started[0] != graph.framework:
        why = f"component {component.name} starts {started[0]}"
        yield invalid("spec.backendFramework", graph.framework, why)
    engine = engines.framework(graph, component)
    if (
        engine == "trtllm"
        and component.multinode
        and not engines.gpus(component)
        and not gpu_claims.has_claims(component)
    ):
        yield required(field_paths.gpus(component), "multi-node TensorRT-LLM starts one process for each GPU")
    if engine != "vllm":
        return
    if command_line.has_flag(command, "--enable-elastic-ep"):
        yield forbidden(
            f"{field_paths.main_container(component)}.args",
            "--enable-elastic-ep is not supported: it needs Ray",
        )
    elif (
        component.multinode
        and engines.spans_by_executor(component)
        and not engines.multiprocessing(graph, component)
    ):
        why = "multi-node engines on Ray are not supported: annotate the graph with "
        yield forbidden(f"{component.path}.multinode", f"{why}{keys.VLLM_EXECUTOR}: mp")


def warnings(graph: Graph, component: GraphComponent) -> Iterator[str]:
    """Warnings about a multi-node engine that gets no flags."""
    if not component.multinode or not component.runs_engine:
        return
    engine = engines.framework(graph, component)
    if not engine:
        yield f"{component.path}: no engine was recognised, so no multi-node flags are added"
    elif engine == "vllm" and not engines.gpus(component) and not gpu_claims.has_claims(component):
        yield f"{component.path}: has no GPUs, so no multi-node flags are added"
