"""Prints the logs of the pods of an object: what there is, or as it comes."""

from __future__ import annotations

import sys

from msgspec import Struct

from grove import timing
from grove.cli.pod_logs.lines import LogLine
from grove.cli.pod_logs.merging import Log, merged
from grove.cli.pod_logs.output import LogOutput
from grove.cli.pod_logs.sources import ContainerChoice, LogPod, LogSource, check_streams, pod_selector
from grove.cli.pod_logs.streams import LogRange, read_log
from grove.cli.printable import printable
from grove.explanation.model import ObjectRef
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS, Resource
from grove.kube.errors import Forbidden, KubeError


class LogRequest(Struct, frozen=True):
    """Whose logs are wanted, and which part of them."""

    about: ObjectRef
    resource: Resource
    set_name: str | None
    choice: ContainerChoice
    wanted: LogRange
    limit: int = timing.LOG_STREAMS


class LogPrinter:
    """Prints logs. Problems with one log are lines on stderr; the others are printed nevertheless."""

    def __init__(self, client: Client, request: LogRequest, output: LogOutput) -> None:
        self._client, self._request, self._output = client, request, output
        self._said: set[str] = set()
        self.failed = False
        """Whether a log could not be read."""

    async def print_existing(self) -> None:
        """Print the logs that there are, merged by time. Raises KubeError, also if there is none."""
        request, choice = self._request, self._request.choice
        selected, fields = pod_selector(request.about, request.set_name)
        namespace = request.about.namespace
        found = await self._client.list(
            PODS, as_type=LogPod, namespace=namespace, labels=selected, fields=fields
        )
        pods = sorted(found.items, key=lambda each: each.metadata.name)
        choice.check(pods)
        sources = [source for pod in pods for source in choice.sources(pod)]
        check_streams(len(sources), request.limit)
        missing = {pod.metadata.name: why for pod in pods if (why := choice.missing(pod))}
        if not sources:
            raise KubeError(_no_log(request, missing))
        await self._print_merged([(source, self._log(source)) for source in sources])
        if missing:
            self._say(f"no log yet: {_names(missing)}")

    async def _print_merged(self, logs: list[tuple[LogSource, Log]]) -> None:
        batch: list[LogLine] = []
        before: LogSource | None = None
        async for source, line in merged(logs):
            if batch and (source != before or len(batch) >= timing.LOG_BATCHES):
                self._output.write(before or source, batch)
                batch = []
            before = source
            batch.append(line)
        if before is not None:
            self._output.write(before, batch)
        self._output.flush()

    async def _log(self, source: LogSource) -> Log:
        """A log; if it cannot be read, that is said, and it ends."""
        request = self._request
        try:
            async for lines in read_log(self._client, request.about.namespace, source, request.wanted):
                yield lines
        except Forbidden:
            raise
        except KubeError as error:
            self._report(source, error)

    async def print_following(self) -> None:
        """Print logs as they come, until all pods have ended or the object is gone. Raises KubeError."""
        # Caches take as long to import as the rest of the command.
        from grove.cli.pod_logs.following import LogFollower
        from grove.kube.cache.cache import Cache

        request = self._request
        selected, fields = pod_selector(request.about, request.set_name)
        place = request.about.namespace
        pods = Cache(PODS, LogPod, namespace=place, labels=selected, fields=fields)
        about = Cache(request.resource, Object, namespace=place, fields=f"metadata.name={request.about.name}")
        follower = LogFollower(
            self._client, pods, about, request.choice, request.wanted, request.limit, self._say
        )
        async for batch in follower.batches():
            if batch.problem is not None:
                self._report(batch.source, batch.problem)
            self._output.write(batch.source, batch.lines)
            self._output.flush()

    def _report(self, source: LogSource, problem: KubeError) -> None:
        self.failed = True
        self._say(f"{source}: {problem}")

    def _say(self, line: str) -> None:
        if line not in self._said:  # many logs lose their connection together
            self._said.add(line)
            self._output.flush()
            sys.stderr.write(printable(f"grove: {line}") + "\n")


def _no_log(request: LogRequest, missing: dict[str, str]) -> str:
    if not missing:
        return f"{request.about} has no pods: grove status {request.about.name} says why"
    return f"{request.about} has no log yet: {_names(missing)}"


def _names(missing: dict[str, str]) -> str:
    shown = [f"{pod} ({why})" for pod, why in list(missing.items())[: timing.NAMES_SHOWN]]
    more = len(missing) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
