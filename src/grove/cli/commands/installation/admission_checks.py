"""Checks of what admission depends on: CRDs, webhook configurations, certificates, and an answer. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from cryptography import x509

from grove import timing
from grove.api.crds import crd
from grove.api.formats.name_list import name_list
from grove.cli.commands.installation.check_model import Check, fail, ok, unknown, warn
from grove.cli.commands.installation.facts import Body, Installation, Unreadable
from grove.dynamo.api import crd_definitions
from grove.webhooks.registrations import AUTHORIZE, VALIDATE_SET, served

_APPLY = "grove crds --apply"
_NO_ANSWER = "docs/admission.md, When the webhooks do not answer"
_COMPARED = ("versions", "scope", "group")


def admission_checks(found: Installation) -> Iterator[Check]:
    """The checks of admission."""
    yield from _definitions(found)
    yield _configured(found)
    yield _certificates(found)
    yield _answer(found)


def _definitions(found: Installation) -> Iterator[Check]:
    known = found.definitions
    if isinstance(known, Unreadable):
        yield unknown("CRDs", known)
        return
    wanted = {each["metadata"]["name"]: each for each in crd.all_definitions()}
    yield _compared("CRDs", wanted, known)
    graphs = {each["metadata"]["name"]: each for each in crd_definitions.all_definitions()}
    configured = found.configuration
    enabled = not isinstance(configured, Unreadable) and configured.dynamo.enabled
    if enabled or any(known.get(name) for name in graphs):
        check = _compared("CRDs of Dynamo", graphs, known)
        # Without our operator for them they may be Dynamo's own.
        yield check if enabled or not check.remedy else warn(check.name, check.message, check.remedy)
    else:
        yield ok("CRDs of Dynamo", "not installed: only dynamo.enabled needs them")


def _compared(name: str, wanted: Mapping[str, Body], known: Mapping[str, Body | None]) -> Check:
    remedy = f"{_APPLY} --dynamo" if "Dynamo" in name else _APPLY
    missing = [each for each in wanted if known.get(each) is None]
    if missing:
        return fail(name, f"not installed: {name_list(missing)}", remedy)
    present = {each: body for each in wanted if (body := known.get(each)) is not None}
    pending = [each for each, body in present.items() if not _is_established(body)]
    if pending:
        return fail(name, f"not established: {name_list(pending)}", f"kubectl describe crd {pending[0]}")
    different = [each for each, body in present.items() if not _is_same(wanted[each]["spec"], body["spec"])]
    if different:
        return warn(
            name,
            f"not those of this version: {name_list(different)}",
            f"{remedy}, with the version of grove that the operator has",
        )
    return ok(name, f"all {len(wanted)} are installed, and those of this version")


def _is_established(body: Body) -> bool:
    conditions = body.get("status", {}).get("conditions") or ()
    return any((each["type"], each["status"]) == ("Established", "True") for each in conditions)


def _is_same(wanted: Body, found: Body) -> bool:
    """Whether a CRD is the one that this version generates; what the API server adds is in other fields."""
    return all(wanted.get(key) == found.get(key) for key in _COMPARED)


def _configured(found: Installation) -> Check:
    name, known = "webhooks", found.webhooks
    if isinstance(known, Unreadable):
        return unknown(name, known)
    configured = found.configuration
    dynamo = not isinstance(configured, Unreadable) and configured.dynamo.enabled
    missing = [each.name for each in served(authorizer=False, dynamo=dynamo) if known.get(each.name) is None]
    if missing:
        remedy = "helm upgrade; for an operator outside of the cluster: grove webhooks"
        return fail(name, f"not configured: {name_list(missing)}: sets are stored without validation", remedy)
    present = {each: body for each, body in known.items() if body is not None}
    without = [each for each, body in present.items() if any(not _bundle(one) for one in _clients(body))]
    if without:
        return fail(name, f"without a CA bundle: {name_list(without)}: the API server cannot call them",
                    "the operator writes it: see its log")  # fmt: skip
    protected = (
        "" if known.get(AUTHORIZE.name) else "; managed objects are not protected (authorizer.enabled)"
    )
    return ok(name, f"{len(present)} are configured{protected}")


def _clients(body: Body) -> Iterator[Body]:
    return (each.get("clientConfig", {}) for each in body.get("webhooks") or ())


def _bundle(client: Body) -> str:
    return client.get("caBundle") or ""


def _certificates(found: Installation) -> Check:
    """The CA certificates that the API server trusts; those of the servers are in a Secret, which is not
    read."""
    name, known = "certificates", found.webhooks
    if isinstance(known, Unreadable):
        return unknown(name, known)
    bundles = {_bundle(one) for body in known.values() if body is not None for one in _clients(body)} - {""}
    if not bundles:
        return unknown(name, "no webhook configuration has a CA bundle")
    try:
        ends = min(max(_ends(each)) for each in bundles)
    except (ValueError, binascii.Error):
        return fail(
            name, "a CA bundle of the webhooks is no certificate", "the operator writes it: see its log"
        )
    left = ends - datetime.fromtimestamp(found.now, UTC)
    date = f"{ends:%Y-%m-%d}"
    if left < timedelta():
        return fail(
            name, f"the CA of the webhooks expired on {date}", "restart the operator, or renew your CA"
        )
    if left < timedelta(days=timing.CERTIFICATE_WARNING_DAYS):
        return warn(name, f"the CA of the webhooks expires on {date}", "the operator renews its own in time: "
                    "see its log; renew a CA of your own")  # fmt: skip
    return ok(name, f"the CA of the webhooks is valid until {date}")


def _ends(bundle: str) -> list[datetime]:
    found = x509.load_pem_x509_certificates(base64.b64decode(bundle))
    return [each.not_valid_after_utc for each in found]


def _answer(found: Installation) -> Check:
    name, answer = "admission", found.review
    if isinstance(answer, Unreadable):
        return unknown(name, answer)
    if not answer:
        return fail(
            name, "the API server accepts a set that breaks a rule", "configure the webhooks: helm upgrade"
        )
    if VALIDATE_SET.webhook in answer and "denied the request" in answer:
        return ok(name, "a set that breaks a rule is refused (tried in a dry run)")
    if "failed calling webhook" in answer:
        return fail(name, " ".join(answer.split()), _NO_ANSWER)
    return warn(name, f"a set was refused, and not by the webhook: {' '.join(answer.split())}",
                "check policies of other projects")  # fmt: skip
