"""`grove operator`: loads the configuration, runs the operator process, maps errors to exit codes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeVar

from grove.api.configuration import loading
from grove.api.configuration.loading import ConfigurationError
from grove.api.configuration.types import OperatorConfiguration
from grove.api.naming.names import init_image
from grove.api.naming.well_known import OperatorEnv
from grove.cli import program
from grove.fabrics.registry import Providers
from grove.kube import yaml_parser
from grove.kube.auth import config as connection
from grove.kube.errors import ConfigError, KubeError
from grove.kube.event_loop_pauses import timed_loop
from grove.kube.yaml_parser import YamlError
from grove.logger import get_logger
from grove.operator import fabric_providers, logs
from grove.operator.admission.process import serve_admission
from grove.operator.observers.schedulers import backend_problems, load_backends
from grove.operator.process import LeadershipEnded, OperatorSettings, operate
from grove.operator.servers import ListenError
from grove.operator.webhooks import ACCOUNT
from grove.schedulers.registry import WITHOUT_SETTINGS, SchedulerBackends

T = TypeVar("T")
log = get_logger("grove.operator")


class Exit(IntEnum):
    """Upstream's exit codes. 3 and 5 are missing: those failures never end this process."""

    OK = 0
    COMMAND_LINE = 1
    CONFIGURATION = 2
    SETUP = 4
    OPERATION = 6
    NVLINK = 7
    """The cluster lacks what automatic multi-node NVLink needs."""


def operator(
    *,
    config: Path | None = None,
    kubeconfig: Path | None = None,
    context: str | None = None,
    namespace: str | None = None,
    admission: str = "",
) -> int:
    """Run the operator until SIGTERM or SIGINT.

    Exit codes: 0 stopped by a signal; 1 wrong command line; 2 wrong configuration; 4 no kubeconfig,
    certificate or free port; 6 leadership lost, or an internal error; 7 automatic MNNVL is enabled and the
    cluster lacks what it needs.

    Parameters
    ----------
    config
        Path of the configuration, YAML or JSON; docs/operator.md describes it. Without it the defaults apply,
        and ports that are in use are replaced by free ones, which the log names.
    kubeconfig
        Path of a kubeconfig; default: KUBECONFIG, the pod's service account, or ~/.kube/config.
    context
        Context of the kubeconfig; default: its current one.
    namespace
        Namespace of the operator: of its lease (overrides leaderElection.resourceNamespace) and of the
        Secret of its webhooks. Default: the pod's namespace, or the context's.
    admission
        Address of a `grove admission` that serves the webhooks, such as
        https://grove-admission.grove-system.svc:9443. Default: this process serves them itself.
    """
    return run(config, kubeconfig, context, namespace, operate, admission=admission)


def admission(
    *,
    config: Path | None = None,
    kubeconfig: Path | None = None,
    context: str | None = None,
    namespace: str | None = None,
) -> int:
    """Run the admission webhooks until SIGTERM or SIGINT.

    `grove operator --admission URL` does the rest. Exit codes are those of `grove operator`.

    Parameters
    ----------
    config
        Path of the operator's configuration, YAML or JSON; docs/operator.md describes it.
    kubeconfig
        Path of a kubeconfig; default: KUBECONFIG, the pod's service account, or ~/.kube/config.
    context
        Context of the kubeconfig; default: its current one.
    namespace
        Namespace of the operator and of the Secret of the webhooks. Default: the pod's namespace, or the
        context's.
    """
    return run(config, kubeconfig, context, namespace, serve_admission)


def run(
    config: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
    process: Callable[[OperatorSettings], Coroutine[Any, Any, None]],
    *,
    admission: str = "",
) -> int:
    """Load the configuration and run a process with it; returns its exit code."""
    try:
        document = read(config) if config else None
        configuration, schedulers, vendors = _load_configuration(document)
        logs.configure(configuration.log_level, configuration.log_format)
        for unknown in loading.unknown_keys(document, WITHOUT_SETTINGS):
            log.warning("ignored", key=unknown.path, action="go on", reason=unknown.detail)
        image = init_image(os.environ.get(OperatorEnv.INIT_IMAGE, ""), program.version())
        account = os.environ.get(ACCOUNT, "")
        settings = OperatorSettings(
            configuration,
            connection.load(kubeconfig, context),
            namespace or "",
            image,
            account,
            schedulers,
            vendors,
            admission,
            any_port=config is None,
        )
    except ConfigurationError as error:
        return _refuse(Exit.CONFIGURATION, *(f"{config}: {problem}" for problem in error.problems))
    except KubeError as error:
        return _refuse(Exit.SETUP, str(error))
    return _run(process(settings))


def _load_configuration(document: object) -> tuple[OperatorConfiguration, SchedulerBackends, Providers]:
    """The configuration with the backends and providers that it names. Raises ConfigurationError with all
    problems."""
    configuration, wrong = loading.check(document)
    problems = list(wrong)
    vendors = _collect_error(problems, lambda: fabric_providers.load_providers(configuration))
    schedulers = None
    if any(problem.startswith("scheduler.") for problem in wrong):
        problems += backend_problems(loading.usable_profiles(document))
    else:
        schedulers = _collect_error(problems, lambda: load_backends(configuration.scheduler))
    if vendors is None or schedulers is None or problems:
        unknown = loading.unknown_keys(document, WITHOUT_SETTINGS)
        raise ConfigurationError((*problems, *(f"{each.path}: {each.detail}" for each in unknown)))
    return configuration, schedulers, vendors


def _collect_error(problems: list[str], make: Callable[[], T]) -> T | None:
    try:
        return make()
    except ConfigurationError as error:
        problems += error.problems
        return None


def read(path: Path) -> object:
    """Parse a configuration file. Raises ConfigurationError."""
    try:
        return yaml_parser.parse(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ConfigurationError(
            (f"cannot be read ({problem.strerror}): check the path and the file mode",)
        ) from None
    except (UnicodeDecodeError, YamlError) as problem:
        why = str(problem) if isinstance(problem, YamlError) else "not text"
        raise ConfigurationError((f"{why}: write it as YAML or JSON",)) from None


def _run(process: Coroutine[Any, Any, None]) -> Exit:
    try:
        with asyncio.Runner(loop_factory=timed_loop) as runner:
            runner.run(process)
    except (ListenError, ConfigError) as error:
        return _refuse(Exit.SETUP, str(error))
    except fabric_providers.PreflightError as error:
        log.error(fabric_providers.PREFLIGHT_FAILED, key="operator", action="exit", reason=str(error))  # noqa: TRY400
        return _refuse(Exit.NVLINK, f"{fabric_providers.PREFLIGHT_FAILED}: {error}")
    except LeadershipEnded as error:
        log.error("stopped", key="operator", action="exit", reason=f"no longer the leader: {error}")  # noqa: TRY400
        return Exit.OPERATION
    except Exception:
        log.exception("stopped", key="operator", action="exit", reason="internal error")
        return Exit.OPERATION
    return Exit.OK


def _refuse(code: Exit, *lines: str) -> Exit:
    for line in lines:
        sys.stderr.write(f"grove: {line}\n")
    return code
