"""Each command that shows objects, in each output format, on the real control plane."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, get_args

import yaml

from grove.cli.options import Output
from grove.kube.client.resource import PODS
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.operator.cli.outputs import batch, compare, normalized
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, small, workload
from tests.terminal import on_terminal

FORMATS = get_args(Output)
LABELLED = {"labels": {"team": "chat"}}
WAITS = clique("a", pod={"nodeSelector": {"no": "such-node"}})
SHOWN = {
    "get": ("get", "--lease", "another"),
    "tree": ("tree", "small"),
    "explain": ("explain", "small"),
    "explain-all": ("explain", "-l", "team=chat"),
    "topology": ("topology",),
    "plan": ("plan", "small", "--replicas", "1"),
}


def command_line(name: str, output: str, here: tuple[str, ...]) -> tuple[str, ...]:
    where = here[2:] if name == "topology" else here
    return (*SHOWN[name], "-o", output, *where)


async def assert_formats(here: tuple[str, ...], pods: list[str]) -> None:
    """The text formats are those of their files, and JSON is what YAML is."""
    wanted = [(name, output) for name in SHOWN for output in FORMATS]
    ended = await batch([command_line(*each, here) for each in wanted])
    found: dict[str, dict[str, str]] = {name: {} for name in SHOWN}
    for (name, output), (code, out, err) in zip(wanted, ended, strict=True):
        assert code == 0, (name, output, err)
        assert "\x1b" not in out + err
        found[name][output] = out
    for name, texts in found.items():
        # Ages and the state of the shared cluster may differ between two commands.
        assert _shape(json.loads(texts["json"])) == _shape(yaml.safe_load(texts["yaml"]))
        for output in ("table", "wide", "name", *(("yaml",) if name in ("get", "tree") else ())):
            compare(f"{name}-{output}", normalized(texts[output], here[1], pods))


def _shape(value: Any) -> Any:
    """The keys of a document, and its texts' number, without its values."""
    if isinstance(value, dict):
        return {key: _shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shape(each) for each in value]
    return type(value).__name__


async def test_each_command_in_each_format(world: World, cluster: LocalCluster) -> None:
    here = ("-n", world.namespace, "--kubeconfig", str(cluster.kubeconfig))
    async with operating(world):
        await world.create(SETS, small())
        await world.until_ready()
        waits = workload("waits", WAITS)
        waits["metadata"] |= LABELLED
        await world.create(SETS, waits)
        await world.until(
            lambda: [each.waits_for for each in world.all(SETS) if each.name == "waits"] != [""]
        )
        pods = [pod.name for pod in world.all(PODS)]
        await assert_formats(here, pods)
        await assert_selected(here)
        await assert_narrow(here)


async def assert_selected(here: tuple[str, ...]) -> None:
    """A selector chooses sets, and one that is wrong is one line."""
    expected = {"team=chat": ["waits"], "team!=chat": ["small"], "!team,team": []}
    lines = [("get", "-o", "name", "-l", each, *here) for each in expected]
    *selected, wrong = await batch([*lines, ("tree", "-l", "a=b=c d", *here)])
    names = [out.split() for _, out, _ in selected]
    assert names == [[f"podcliqueset.grove.io/{name}" for name in each] for each in expected.values()]
    assert wrong[:2] == (1, "")
    assert wrong[2].startswith("grove: --selector a=b=c d: ")


async def assert_narrow(here: tuple[str, ...]) -> None:
    """On a terminal of 40 columns no line is wider."""
    for name in ("get", "tree", "explain", "topology"):
        arguments = SHOWN[name]
        where = here[2:] if name == "topology" else here
        code, shown = await asyncio.to_thread(on_terminal, *arguments, *where, columns=40)
        assert code == 0, shown
        lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown).splitlines()
        # Messages on standard error are not cut: they are meant to be read, and copied.
        wide = [line for line in lines if len(line) > 40 and not line.startswith(("operator: ", "grove: "))]
        assert wide == [], name
