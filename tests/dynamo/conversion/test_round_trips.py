"""Objects are converted to the other version and back: nothing is lost, and changes in between are kept."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from grove.dynamo.conversion.objects import as_written, converted
from grove.dynamo.conversion.preservation import same
from tests.dynamo.conversion import specs
from tests.shared import SHARED

ALPHA, BETA = "v1alpha1", "v1beta1"
INPUTS = sorted((SHARED / "testdata/dynamo/input").glob("*.yaml"))


def an_object(version, spec, status=None, **annotations):
    body = {
        "apiVersion": f"nvidia.com/{version}",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "app", "namespace": "ns", "uid": "1", "labels": {"a": "b"}},
        "spec": spec,
    }
    if annotations:
        body["metadata"]["annotations"] = annotations
    return body | ({} if status is None else {"status": status})


def other(version):
    return BETA if version == ALPHA else ALPHA


def there(body, version):
    """The object in the other version, as the API server receives it."""
    return msgspec.json.decode(msgspec.json.encode(converted(body, other(version))))


def assert_lossless(body, version):
    between = there(body, version)
    assert between["apiVersion"] == f"nvidia.com/{other(version)}"
    rest = {key: value for key, value in between["metadata"].items() if key != "annotations"}
    assert rest == {key: value for key, value in body["metadata"].items() if key != "annotations"}
    back = converted(between, version)
    assert same(back, body), (between, back)


@given(specs.ALPHA_SPEC, st.none() | specs.STATUS_ENTRIES)
def test_alpha_survives_beta(spec, entries):
    status = None if entries is None else {"state": "pending", "services": entries}
    assert_lossless(an_object(ALPHA, spec, status, note="x"), ALPHA)


@given(specs.BETA_SPEC, st.none() | specs.STATUS_ENTRIES)
def test_beta_survives_alpha(spec, entries):
    status = None if entries is None else {"state": "pending", "components": entries}
    assert_lossless(an_object(BETA, spec, status, note="x"), BETA)


@given(specs.WILD_ALPHA, specs.ANYTHING)
def test_fuzz_anything_in_alpha_survives_beta(spec, status):
    assert_lossless(an_object(ALPHA, spec, status), ALPHA)


@given(specs.WILD_BETA, specs.ANYTHING)
def test_fuzz_anything_in_beta_survives_alpha(spec, status):
    assert_lossless(an_object(BETA, spec, status), BETA)


@given(specs.ALPHA_SPEC, specs.COMPONENTS)
def test_beta_written_over_alpha_is_kept(first, second):
    """A client of v1beta1 replaces the components; what is preserved of v1alpha1 stays beside them."""
    stored = there(an_object(ALPHA, first), ALPHA)
    edited = {**stored, "spec": {**stored["spec"], "components": second}}
    assert same(converted(there(edited, BETA), BETA)["spec"], edited["spec"])


@given(specs.BETA_SPEC, specs.SERVICES)
def test_alpha_written_over_beta_is_kept(first, second):
    view = there(an_object(BETA, first), BETA)
    edited = {**view, "spec": {**view["spec"], "services": second}}
    assert same(converted(there(edited, ALPHA), ALPHA)["spec"], edited["spec"])


@given(specs.ALPHA_SPEC)
def test_conversion_to_alpha_restores_what_was_written(spec):
    """The decoder reads stored objects this way, so they are rendered as if they had never been converted."""
    body = an_object(ALPHA, {"services": {}, **spec})
    assert same(as_written(there(body, ALPHA))["spec"], body["spec"])


@given(specs.BETA_SPEC, st.integers(0, 9))
def test_beta_scaled_by_client_of_alpha_is_rendered_as_beta(spec, replicas):
    view = there(an_object(BETA, {"components": [], **spec}), BETA)
    for each in view["spec"]["services"].values():
        each["replicas"] = replicas
    stored = there(view, ALPHA)
    assert as_written(stored) is stored
    expected = [{**each, "replicas": replicas} for each in spec.get("components", ())]
    if len({each["name"] for each in expected}) == len(expected):
        assert same(stored["spec"].get("components", []), expected)
