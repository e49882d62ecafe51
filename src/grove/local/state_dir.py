"""The state directory of one cluster: its paths, its settings, and the lock for commands that change it."""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from grove.local.errors import LocalError
from grove.local.paths import default_state_dir
from grove.local.private_files import write_private

_MIN_FREE_BYTES = 256 * 2**20  # etcd preallocates 64 MiB for each of its log segments
_LOCK_HELD = (errno.EAGAIN, errno.EACCES)


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    """The loopback port of each component."""

    apiserver: int
    etcd: int
    etcd_peer: int
    controller_manager: int
    scheduler: int
    kwok: int


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a cluster; stored, so that a restart uses the same ones."""

    kubernetes: str  # the minor version
    nodes: int
    gpus: int
    shape: str
    pace: str = "fast"
    port: int = 0
    feature_gates: dict[str, bool] = {}
    runtime_config: tuple[str, ...] = ()
    audit: bool = False
    init_containers: bool = False
    fabric: bool = False


class ClusterRecord(msgspec.Struct, frozen=True, kw_only=True):
    """cluster.json: settings and ports; it also marks a directory as that of a cluster."""

    settings: ClusterSettings
    ports: Ports
    origins: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class StateDir:
    """Paths inside a state directory."""

    root: Path

    @property
    def option(self) -> str:
        """What selects this cluster in a command, to be put after its name; empty for the default one."""
        return "" if self.root == default_state_dir() else f" --state-dir {shlex.quote(str(self.root))}"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def pki(self) -> Path:
        return self.root / "pki"

    @property
    def etcd_data(self) -> Path:
        return self.root / "etcd"

    @property
    def audit_log(self) -> Path:
        return self.root / "logs" / "audit.log"

    def config(self, name: str) -> Path:
        return self.root / "config" / name

    def log(self, part: str) -> Path:
        return self.root / "logs" / f"{part}.log"

    def pid(self, part: str) -> Path:
        return self.root / "run" / f"{part}.pid"

    @property
    def _record(self) -> Path:
        return self.root / "cluster.json"

    def read(self) -> ClusterRecord | None:
        """The record of the cluster in this directory, if there is one."""
        try:
            return _decode(self._record.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LocalError(f"cannot read {self._record}: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise LocalError(
                f"{self._record} is damaged ({error}): remove {self.root} and run grove up{self.option}"
            ) from error

    def write(self, record: ClusterRecord) -> None:
        write_private(self._record, msgspec.json.format(msgspec.json.encode(record)))

    def prepare(self) -> None:
        """Create the directories, and check early for what would fail later: permissions and free space."""
        try:
            for folder in ("config", "logs", "run"):
                (self.root / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            free = shutil.disk_usage(self.root).free
        except OSError as error:
            raise LocalError(
                f"cannot write to the state directory {self.root}: {error.strerror}; "
                "choose another with --state-dir"
            ) from error
        if not os.access(self.root, os.W_OK):
            raise LocalError(
                f"cannot write to the state directory {self.root}; choose another with --state-dir"
            )
        if free < _MIN_FREE_BYTES:
            raise LocalError(
                f"only {free >> 20} MiB free in the state directory {self.root}, "
                f"{_MIN_FREE_BYTES >> 20} MiB are needed: free some space, or choose another with --state-dir"
            )

    def remove(self) -> None:
        """Remove the whole directory, but only if it is that of a cluster."""
        if self.root.exists() and not (self._record.exists() or (self.root / "run").is_dir()):
            raise LocalError(f"{self.root} is not the state directory of a cluster: not removed")
        shutil.rmtree(self.root, ignore_errors=False)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock: only one command at a time changes a cluster. The lock ends with its process."""
        with (self.root / "run" / "lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in _LOCK_HELD:
                    raise
                file.seek(0)
                holder = file.read().strip() or "unknown"
                raise LocalError(
                    f"another grove command (pid {holder}) is changing {self.root}: wait until it ends"
                ) from error
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield


def _decode(content: bytes) -> ClusterRecord:
    """A record; those from before the version could be chosen are of Kubernetes 1.36."""
    record = msgspec.json.decode(content, type=dict[str, dict[str, object]])
    record.get("settings", {}).setdefault("kubernetes", "1.36")
    return msgspec.convert(record, ClusterRecord)
