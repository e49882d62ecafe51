"""`grove operator`: the process that a Deployment runs, and what its exit code means."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from enum import IntEnum
from importlib import metadata
from pathlib import Path
from typing import TypeVar

import structlog

from grove.api import configfile
from grove.api.config import OperatorConfiguration
from grove.api.configfile import ConfigurationError
from grove.api.marks import OperatorEnv
from grove.api.names import init_image
from grove.fabrics.registry import Providers
from grove.kube import config as connection
from grove.kube import yamltext
from grove.kube.errors import ConfigError, KubeError
from grove.kube.pauses import timed_loop
from grove.kube.yamltext import NotYaml
from grove.operator import fabrics, logs
from grove.operator.admission import ACCOUNT
from grove.operator.process import LeadershipEnded, Settings, operate
from grove.operator.schedulers import registered
from grove.operator.servers import CannotListen
from grove.schedulers.registry import Backends

T = TypeVar("T")
log = structlog.get_logger("grove.operator")


class Exit(IntEnum):
    """Upstream's codes where ours can fail the same way; 3 and 5 are things that never end this process."""

    OK = 0
    COMMAND_LINE = 1
    CONFIGURATION = 2
    SETUP = 4
    OPERATION = 6
    NVLINK = 7
    """What automatic multi-node NVLink needs is not in the cluster."""


def operator(
    *,
    config: Path | None = None,
    kubeconfig: Path | None = None,
    context: str | None = None,
    namespace: str | None = None,
) -> int:
    """Run the operator until SIGTERM or SIGINT.

    Exit codes: 0 told to stop; 1 wrong command line; 2 wrong configuration; 4 no kubeconfig, certificate or
    free port; 6 leadership lost, or a fault of ours; 7 automatic MNNVL is
    enabled and the cluster lacks what it needs.

    Parameters
    ----------
    config
        The configuration, YAML or JSON; docs/operator.md describes it. Without it the defaults hold.
    kubeconfig
        The way to the cluster; without it KUBECONFIG, the pod's service account, or ~/.kube/config.
    context
        A context of the kubeconfig other than its current one.
    namespace
        Where the operator lives: its lease (overrides leaderElection.resourceNamespace) and its webhooks'
        Secret. Without it the pod's namespace, or the context's.
    """
    try:
        document = read(config) if config else None
        configuration, schedulers, vendors = _settle(document)
        logs.configure(configuration.log_level, configuration.log_format)
        for key in configfile.unknown(document):
            log.warning("ignored", key=key, action="go on", reason="not a key that this version knows")
        image = init_image(os.environ.get(OperatorEnv.INIT_IMAGE, ""), metadata.version("grove"))
        account = os.environ.get(ACCOUNT, "")
        settings = Settings(
            configuration,
            connection.load(kubeconfig, context),
            namespace or "",
            image,
            account,
            schedulers,
            vendors,
        )
    except ConfigurationError as error:
        return _refuse(Exit.CONFIGURATION, *(f"{config}: {problem}" for problem in error.problems))
    except KubeError as error:
        return _refuse(Exit.SETUP, str(error))
    return _run(settings)


def _settle(document: object) -> tuple[OperatorConfiguration, Backends, Providers]:
    """The configuration, and whom it names. Raises ConfigurationError with all that is wrong with it."""
    configuration, wrong = configfile.examine(document)
    problems = list(wrong)
    vendors = _or_note(problems, lambda: fabrics.registered(configuration))
    known = not any(problem.startswith("scheduler.") for problem in wrong)
    schedulers = _or_note(problems, lambda: registered(configuration.scheduler)) if known else None
    if vendors is None or schedulers is None or problems:
        raise ConfigurationError(tuple(problems))
    return configuration, schedulers, vendors


def _or_note(problems: list[str], make: Callable[[], T]) -> T | None:
    try:
        return make()
    except ConfigurationError as error:
        problems += error.problems
        return None


def read(path: Path) -> object:
    """What is written in a file. Raises ConfigurationError."""
    try:
        return yamltext.parse(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ConfigurationError((f"cannot be read ({problem.strerror}): check the path and mode",)) from None
    except (UnicodeDecodeError, NotYaml) as problem:
        why = str(problem) if isinstance(problem, NotYaml) else "not text"
        raise ConfigurationError((f"{why}: write it as YAML or JSON",)) from None


def _run(settings: Settings) -> Exit:
    try:
        with asyncio.Runner(loop_factory=timed_loop) as runner:
            runner.run(operate(settings))
    except (CannotListen, ConfigError) as error:
        return _refuse(Exit.SETUP, str(error))
    except fabrics.Unfit as error:
        log.error(fabrics.HEADLINE, key="operator", action="exit", reason=str(error))  # noqa: TRY400
        return _refuse(Exit.NVLINK, f"{fabrics.HEADLINE}: {error}")
    except LeadershipEnded as error:
        log.error("stopped", key="operator", action="exit", reason=f"no longer the leader: {error}")  # noqa: TRY400
        return Exit.OPERATION
    except Exception:
        log.exception("stopped", key="operator", action="exit", reason="a fault that nobody foresaw")
        return Exit.OPERATION
    return Exit.OK


def _refuse(code: Exit, *lines: str) -> Exit:
    for line in lines:
        sys.stderr.write(f"grove: {line}\n")
    return code
