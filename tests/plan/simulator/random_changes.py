"""Random workloads of all shapes, and random changes by users, nodes and time."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from grove.api.naming import labels
from tests.plan.builders import a_set
from tests.plan.simulator import actors
from tests.plan.simulator.api_server import Body
from tests.plan.simulator.simulator import Simulator

GENTLE = ("run", "run all", "fail", "delete", "force delete", "finish", "wait")
SCALING = ("scale clique", "scale group", "scale set")
SHARED = [(level, scope) for level in ("set", "group", "clique") for scope in ("AllReplicas", "PerReplica")]
METRIC: Body = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "1500m"}},
}
ROUGH = (
    "lose gang",
    "lose clique",
    "orphan clique",
    "edit clique",
    "new template",
    "collect",
    "edit autoscaler",
    "switch autoscaling",
    "lose claim",
    "edit claim",
)


@st.composite
def workloads(draw: st.DrawFn) -> Body:
    """Small sets of every shape: one to three cliques, some of them in a group."""
    words = []
    for name in "abc"[: draw(st.integers(1, 3))]:
        replicas = draw(st.integers(1, 3))
        words.append(f"{name}:{replicas}/{draw(st.integers(1, replicas))}")
    members = draw(st.sampled_from([names for names in ("", "a", "b", "b,c") if len(names) <= len(words)]))
    groups = ""
    if members and max(members) <= "abc"[len(words) - 1]:
        replicas = draw(st.integers(1, 3))
        groups = f"x:{replicas}/{draw(st.integers(1, replicas))}={members}"
    body = a_set(" ".join(words), groups)
    for part in scalable(body):
        if draw(st.booleans()):
            switch_autoscaling(part)
    return body


@st.composite
def sharing_workloads(draw: st.DrawFn) -> Body:
    """The same, with claims that parts of them share."""
    body = draw(workloads())
    share_claims(body, draw(st.sets(st.sampled_from(SHARED))))
    return body


def share_claims(body: Body, chosen: set[tuple[str, str]]) -> None:
    """Adds claims that parts of a set share, each from a template of its own."""
    template = body["spec"]["template"]
    parts = {
        "set": [template],
        "group": template.get("podCliqueScalingGroups", []),
        "clique": template["cliques"],
    }
    names = {f"{level}-{scope[:3].lower()}" for level, scope in chosen}
    template["resourceClaimTemplates"] = [
        {"name": name, "templateSpec": {"spec": {}}} for name in sorted(names)
    ]
    for level, scope in sorted(chosen):
        for part in parts[level]:
            entry = {"name": f"{level}-{scope[:3].lower()}", "scope": scope}
            part["resourceSharing"] = [*part.get("resourceSharing", ()), entry]


def scalable(body: Body) -> list[Body]:
    """The parts of a set that can be autoscaled: specs of cliques outside of groups, and groups."""
    template = body["spec"]["template"]
    groups = template.get("podCliqueScalingGroups", [])
    grouped = {name for group in groups for name in group["cliqueNames"]}
    return [clique["spec"] for clique in template["cliques"] if clique["name"] not in grouped] + groups


def switch_autoscaling(part: Body) -> None:
    key = "scaleConfig" if "cliqueNames" in part else "autoScalingConfig"
    if part.pop(key, None) is None:
        part[key] = {"minReplicas": part["minAvailable"], "maxReplicas": 9, "metrics": [METRIC]}


class RandomChanges:
    """Applies random changes to a simulator."""

    def __init__(self, sim: Simulator, chance: Random) -> None:
        self.sim, self.chance = sim, chance

    def apply_random(self, *kinds: str) -> str:
        """Applies one change of these kinds, if possible."""
        kind = self.chance.choice(kinds)
        getattr(self, "_" + kind.replace(" ", "_"))()
        return kind

    def _any(self, kind: str) -> str | None:
        names = sorted(self.sim.api.all(kind))
        return self.chance.choice(names) if names else None

    def _any_living(self) -> str | None:
        names = sorted(actors.living(self.sim))
        return self.chance.choice(names) if names else None

    def _run(self) -> None:
        if name := self._any_living():
            actors.run(self.sim, name)

    def _run_all(self) -> None:
        actors.run_all(self.sim)

    def _fail(self) -> None:
        if name := self._any_living():
            actors.fail(self.sim, name, self.chance.choice(("Failed", "Succeeded")))

    def _delete(self) -> None:
        if name := self._any_living():
            actors.delete(self.sim, name)

    def _force_delete(self) -> None:
        if name := self._any("Pod"):
            actors.force_delete(self.sim, name)

    def _finish(self) -> None:
        actors.finish_terminating(self.sim)

    def _wait(self) -> None:
        self.sim.now += self.chance.choice((1.0, 30.0, 700.0))

    def _scale_clique(self) -> None:
        if name := self._any("PodClique"):
            least = self.sim.api.get("PodClique", name)["spec"]["minAvailable"]
            self.sim.scale("PodClique", name, self.chance.choice((0, least, least + 1, least + 2)))

    def _scale_group(self) -> None:
        if name := self._any("PodCliqueScalingGroup"):
            least = self.sim.api.get("PodCliqueScalingGroup", name)["spec"]["minAvailable"]
            self.sim.scale(
                "PodCliqueScalingGroup", name, self.chance.choice((0, least, least + 1, least + 2))
            )

    def _scale_set(self) -> None:
        self.sim.scale("PodCliqueSet", self.sim.set_name, self.chance.choice((0, 1)))

    def _lose_gang(self) -> None:
        if name := self._any("PodGang"):
            self.sim.api.delete("PodGang", name)

    def _lose_clique(self) -> None:
        if name := self._any("PodClique"):
            self.sim.api.delete("PodClique", name)

    def _orphan_clique(self) -> None:
        """A user deletes a clique with `--cascade=orphan`."""
        if name := self._any("PodClique"):
            for pod, found in self.sim.pods(name).items():
                if found.metadata.deletion_timestamp is None:
                    self.sim.api.patch("Pod", pod, {"metadata": {"ownerReferences": None}})
            self.sim.api.delete("PodClique", name)

    def _edit_clique(self) -> None:
        if name := self._any("PodClique"):
            edits: tuple[Body, ...] = (
                {"metadata": {"labels": {labels.GANG: None}}},
                {"metadata": {"labels": {"mine": "yes"}, "finalizers": ["grove.io/podclique.grove.io"]}},
                {"spec": {"roleName": "other", "minAvailable": 1}},
            )
            self.sim.api.patch("PodClique", name, self.chance.choice(edits))

    def _edit_autoscaler(self) -> None:
        if name := self._any("HorizontalPodAutoscaler"):
            edits: tuple[Body | None, ...] = (
                {"spec": {"maxReplicas": 99, "metrics": None}},
                {"spec": {"scaleTargetRef": {"name": "other"}}},
                {"metadata": {"labels": {labels.SET_REPLICA: None}}},
                None,
            )
            edit = self.chance.choice(edits)
            if edit is None:
                self.sim.api.delete("HorizontalPodAutoscaler", name)
            else:
                self.sim.api.patch("HorizontalPodAutoscaler", name, edit)

    def _lose_claim(self) -> None:
        if name := self._any("ResourceClaim"):
            self.sim.api.delete("ResourceClaim", name)

    def _edit_claim(self) -> None:
        if name := self._any("ResourceClaim"):
            edits: tuple[Body, ...] = (
                {"labels": {labels.POD_INDEX: "9", labels.GROUP_REPLICA: "9", "mine": "yes"}},
                {"labels": {labels.COMPONENT: None}},
                {"ownerReferences": None},
            )
            self.sim.api.patch("ResourceClaim", name, {"metadata": self.chance.choice(edits)})

    def _switch_autoscaling(self) -> None:
        body = self.sim.api.get("PodCliqueSet", self.sim.set_name)
        switch_autoscaling(self.chance.choice(scalable(body)))
        # A merge patch cannot remove a key inside a list: the list is written as a whole.
        self.sim.api.patch("PodCliqueSet", self.sim.set_name, {"spec": body["spec"]})

    def _new_template(self) -> None:
        spec = self.sim.api.get("PodCliqueSet", self.sim.set_name)["spec"]
        for clique in spec["template"]["cliques"]:
            clique["spec"]["podSpec"]["containers"][0]["image"] = f"example.com/serve:{self.sim.api.version}"
        self.sim.api.patch("PodCliqueSet", self.sim.set_name, {"spec": spec})

    def _collect(self) -> None:
        actors.collect_garbage(self.sim)
