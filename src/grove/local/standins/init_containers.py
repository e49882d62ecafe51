"""A stand-in for kubelets: runs Grove's init containers, which KWOK's nodes do not run.

For each pod with such an init container it does what a kubelet does: mounts the token and the pod
information, runs the program and reports its exit. It is the real program, with the pod's own token and its
own connection; all of them run as tasks of this process. KWOK starts a pod only after its init container has
succeeded (`kwok.yaml`).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import structlog

from grove.api.naming import labels
from grove.initc.arguments import PodContext, UsageError, parse
from grove.initc.ready_wait import wait
from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import STRATEGIC, Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS, SECRETS
from grove.kube.client.retry import Backoff
from grove.kube.errors import BadRequest, Forbidden, Invalid, KubeError, NotFound
from grove.local.standins.pod_status import InitContainerPod, ended, running
from grove.local.standins.token_mounts import TokenMounts, TokenSecret
from grove.logger import get_logger

log = get_logger("grove.local")

_BACKOFF = Backoff(first=0.1, longest=5.0)
_OURS = {labels.MANAGED_BY: labels.OPERATOR}
_TOKENS = {**_OURS, labels.COMPONENT: labels.ComponentLabel.TOKEN_SECRET.value}


class InitContainers:
    """Runs the init containers of all pods of one cluster, until cancelled."""

    def __init__(self, connection: Config) -> None:
        self._connection = connection
        self._pods: Cache[InitContainerPod] = Cache(PODS, InitContainerPod, labels=_OURS)
        self._secrets: Cache[TokenSecret] = Cache(SECRETS, TokenSecret, labels=_TOKENS)
        self._mounts = TokenMounts(self._secrets)
        self._runs: dict[str, asyncio.Task[None]] = {}
        self._rng = random.Random()  # noqa: S311 - jitter, not secrets

    async def run(self) -> None:
        """Watch pods and run their init containers."""
        async with Client(self._connection) as client:
            self._client = client
            self._pods.subscribe(self._on_pod)
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(Reflector(client, self._secrets).run())
                tasks.create_task(Reflector(client, self._pods).run())

    def _on_pod(self, old: InitContainerPod | None, new: InitContainerPod | None) -> None:
        pod = new or old
        assert pod is not None
        uid = pod.metadata.uid
        if new is None or new.metadata.deletion_timestamp is not None:
            if run := self._runs.pop(uid, None):
                run.cancel()
        elif new.needs_init_container and uid not in self._runs:
            self._runs[uid] = self._tasks.create_task(self._run(new), name=f"initc {new.metadata.name}")

    async def _run(self, pod: InitContainerPod) -> None:
        try:
            await self._run_init_container(pod)
        except Exception:  # an error of one pod does not affect the others
            log.exception("init container", key=pod.metadata.name, action="give up", reason="internal error")

    async def _run_init_container(self, pod: InitContainerPod) -> None:
        """Run one init container, from its mounts to its exit."""
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        with TemporaryDirectory(prefix="grove-initc-") as folder:
            try:
                arguments = parse(
                    (*pod.arguments, f"--service-account={folder}/account", f"--pod-info={folder}/info")
                )
                async with self._mounts.token(pod, Path(folder) / "account"):
                    await self._report(pod, running(pod))
                    context = self._context(pod)
                    await wait(
                        arguments, context, lambda line: log.info("init container", key=name, reason=line)
                    )
            except UsageError as error:
                log.warning("init container", key=name, action="give up", reason=str(error))
                await self._report(pod, ended(pod, 1, str(error)))
            else:
                await self._report(pod, ended(pod, 0))

    def _context(self, pod: InitContainerPod) -> PodContext:
        """The content of the pod's environment and of its downward API volume."""
        server = urlsplit(self._connection.server)
        gang = pod.metadata.labels.get(labels.GANG, "")
        return PodContext(server.hostname or "", server.port or 443, pod.metadata.namespace, gang)

    async def _report(self, pod: InitContainerPod, status: dict[str, object]) -> None:
        """Patch the pod's status; retries, since the pod waits for it and nothing else reports it."""
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        for attempt in itertools.count():
            try:
                await self._patch_status(pod, status)
            except NotFound:
                return  # the pod is deleted
            except (BadRequest, Forbidden, Invalid) as error:
                log.warning("not reported", key=key, action="give up", reason=str(error))
                return
            except KubeError as error:
                log.warning("not reported", key=key, action="try again", reason=str(error))
                await asyncio.sleep(_BACKOFF.pause(attempt, self._rng))
            else:
                return

    async def _patch_status(self, pod: InitContainerPod, status: dict[str, object]) -> None:
        meta = pod.metadata
        await self._client.patch(
            PODS,
            meta.name,
            {"metadata": {"uid": meta.uid}, "status": status},
            namespace=meta.namespace,
            as_type=Object,
            kind=STRATEGIC,
            subresource="status",
        )


def main() -> None:
    """`python -m grove.local.standins.init_containers KUBECONFIG`: a component of the local cluster."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    connection = config.load(Path(sys.argv[1]))
    asyncio.run(InitContainers(connection).run())


if __name__ == "__main__":
    main()
