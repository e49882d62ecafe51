"""The state directory: what is rejected, and the error messages."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from grove.local import state_dir as state_module
from grove.local.build.binaries import Binaries
from grove.local.cluster import lifecycle, ports, processes
from grove.local.errors import LocalError
from grove.local.progress import ProgressReporter
from grove.local.state_dir import ClusterRecord, ClusterSettings, StateDir

SETTINGS = ClusterSettings(
    kubernetes="1.37",
    nodes=2,
    gpus=8,
    shape="1x1x1x2",
    feature_gates={"A": True},
    runtime_config=("a/v1=true",),
)


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    found = StateDir(tmp_path / "cluster")
    found.prepare()
    return found


def test_record_round_trips(state) -> None:
    assert state.read() is None
    record = ClusterRecord(settings=SETTINGS, ports=ports.choose(0), origins={"etcd": "cache"})
    state.write(record)
    assert state.read() == record


def test_record_without_version_is_of_1_36(state) -> None:
    """Records from before the version could be chosen: an upgrade is the user's decision."""
    state.write(ClusterRecord(settings=SETTINGS, ports=ports.choose(0)))
    record = state.root / "cluster.json"
    record.write_text(record.read_text().replace('"kubernetes": "1.37",', ""))
    found = state.read()
    assert found is not None
    assert found.settings.kubernetes == "1.36"


def test_older_version_is_refused(state) -> None:
    state.write(ClusterRecord(settings=SETTINGS, ports=ports.choose(0)))
    older = msgspec.structs.replace(SETTINGS, kubernetes="1.36")
    with pytest.raises(LocalError, match=r"the data of Kubernetes 1\.37, which 1\.36 cannot read"):
        lifecycle.up(state, older, _unexpected, ProgressReporter(Console(quiet=True)))


def _unexpected(minor: str) -> Binaries:
    raise AssertionError(f"the programs of {minor} are requested")


def test_damaged_record_names_the_remedy(state) -> None:
    (state.root / "cluster.json").write_text('{"settings": {}')
    with pytest.raises(LocalError, match=r"damaged .*: remove"):
        state.read()


def test_uncreatable_directory_is_one_line(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LocalError, match=r"cannot write to the state directory .*--state-dir"):
        StateDir(tmp_path / "file" / "cluster").prepare()


def test_full_disk_is_reported_before_start(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(state_module, "_MIN_FREE_BYTES", 2**60)
    with pytest.raises(LocalError, match=r"only \d+ MiB free .*--state-dir"):
        StateDir(tmp_path / "cluster").prepare()


def test_second_command_is_rejected_by_lock(state) -> None:
    with (
        state.lock(),
        pytest.raises(LocalError, match=r"another grove command \(pid \d+\) is changing"),
        state.lock(),
    ):
        pass
    with state.lock():
        pass


def test_only_cluster_directory_is_removed(tmp_path) -> None:
    precious = tmp_path / "photos"
    precious.mkdir()
    (precious / "cat.jpg").write_text("meow")
    with pytest.raises(LocalError, match="is not the state directory of a cluster"):
        lifecycle.down(StateDir(precious), delete=True)
    with pytest.raises(LocalError, match="not removed"):
        StateDir(precious).remove()
    assert (precious / "cat.jpg").exists()


def test_down_without_cluster_is_no_error(tmp_path) -> None:
    assert lifecycle.down(StateDir(tmp_path / "nothing"), delete=True) == []


def test_taken_port_is_named(tmp_path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LocalError, match=rf"port {port} is taken .*--port"):
            ports.choose(port)


def test_ports_are_distinct_and_requested_one_is_kept() -> None:
    chosen = ports.choose(0)
    numbers = [getattr(chosen, name) for name in chosen.__struct_fields__]
    assert len(set(numbers)) == len(numbers)
    assert ports.choose(numbers[0]).apiserver == numbers[0]


@pytest.mark.parametrize("port", [-1, 65_536])
def test_invalid_port_is_rejected(port) -> None:
    with pytest.raises(LocalError, match="65535"):
        ports.choose(port)


def test_unresponsive_components_name_the_remedy(state) -> None:
    """For example a terminating API server: its process exists, its port is closed."""
    state.write(ClusterRecord(settings=SETTINGS, ports=ports.choose(0)))
    state.kubeconfig.write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n"
    )
    for part in lifecycle.COMPONENTS:
        processes.spawn(["sleep", "600"], state.log(part), state.pid(part))
    try:
        with pytest.raises(
            LocalError,
            match=r"cannot be reached .*: grove down --state-dir \S+, then grove up --state-dir \S+$",
        ):
            lifecycle.up(state, SETTINGS, pytest.fail, ProgressReporter(Console(), quiet=True))
    finally:
        assert len(lifecycle.down(state, delete=True)) == len(lifecycle.COMPONENTS)


def test_option_selects_the_cluster(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert StateDir(tmp_path / "grove" / "default").option == ""
    assert StateDir(tmp_path / "my cluster").option == f" --state-dir '{tmp_path}/my cluster'"
