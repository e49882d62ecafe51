"""When certificates are due, and what is made of those that are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509 import verification
from hypothesis import given, settings
from hypothesis import strategies as st

from grove.kube.certs.certificate_secret import ca_bundle_patch, parse_secret_data, secret_data
from grove.kube.certs.certificates import (
    AUTHORITY_LIFETIME,
    SERVING_LIFETIME,
    KeyPair,
    ServingCredentials,
    is_valid_for,
    issue_authority,
    issue_serving,
    needs_rotation,
    next_rotation,
    rotate_if_due,
)
from grove.kube.certs.certificates import is_issued_by as issued_by_one_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
HOSTS = ("grove-operator.grove-system.svc", "127.0.0.1")
MADE = rotate_if_due(None, HOSTS, NOW)


def trusted(serving: bytes, ca_bundle: bytes, host: str, now: datetime) -> bool:
    """Whether a careful client accepts the server: chain, dates, names and usages."""
    roots = x509.load_pem_x509_certificates(ca_bundle)
    policy = verification.PolicyBuilder().store(verification.Store(roots)).time(now)
    try:
        policy.build_server_verifier(x509.DNSName(host)).verify(x509.load_pem_x509_certificate(serving), [])
    except verification.VerificationError:
        return False
    return True


def has_its_key(pair: KeyPair) -> bool:
    key = serialization.load_pem_private_key(pair.key, None)
    return key.public_key() == x509.load_pem_x509_certificate(pair.certificate).public_key()


@pytest.mark.parametrize(
    ("age", "due"),
    [(0.0, False), (0.5, False), (0.66, False), (0.67, True), (0.99, True), (1.5, True)],
)
def test_a_certificate_is_due_after_two_thirds_of_its_life(age: float, due: bool) -> None:
    assert needs_rotation(MADE.serving.certificate, NOW + SERVING_LIFETIME * age) is due
    assert needs_rotation(MADE.authority.certificate, NOW + AUTHORITY_LIFETIME * age) is due


@pytest.mark.parametrize(
    "broken", [b"", b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"]
)
def test_what_is_no_certificate_is_due(broken: bytes) -> None:
    assert needs_rotation(broken, NOW)


def test_new_credentials_are_accepted_by_a_careful_client() -> None:
    assert trusted(MADE.serving.certificate, MADE.ca_bundle, HOSTS[0], NOW)
    assert not trusted(MADE.serving.certificate, MADE.ca_bundle, "elsewhere.svc", NOW)
    assert not trusted(MADE.serving.certificate, issue_authority(NOW).certificate, HOSTS[0], NOW)


def test_good_credentials_stay_as_they_are() -> None:
    assert rotate_if_due(MADE, HOSTS, NOW + DAY) is MADE
    assert next_rotation(MADE) > NOW + DAY


other = issue_authority(NOW)


@pytest.mark.parametrize(
    "known",
    [
        ServingCredentials(MADE.authority, KeyPair(b"", b"")),
        ServingCredentials(MADE.authority, KeyPair(MADE.serving.certificate, other.key)),
        ServingCredentials(MADE.authority, issue_serving(other, HOSTS, NOW)),
        ServingCredentials(MADE.authority, issue_serving(MADE.authority, HOSTS[:1], NOW)),
        ServingCredentials(MADE.authority, issue_serving(MADE.authority, HOSTS, NOW - 300 * DAY)),
        ServingCredentials(KeyPair(MADE.authority.certificate, b""), MADE.serving),
        ServingCredentials(KeyPair(b"", b""), MADE.serving),
    ],
    ids=["empty", "wrong key", "wrong authority", "missing host", "old", "no authority key", "no authority"],
)
def test_what_is_wrong_is_replaced_and_only_that(known: ServingCredentials) -> None:
    made = rotate_if_due(known, HOSTS, NOW)
    assert is_valid_for(made.serving, made.authority.certificate, HOSTS)
    assert has_its_key(made.serving)
    assert has_its_key(made.authority)
    assert trusted(made.serving.certificate, made.ca_bundle, HOSTS[0], NOW)
    if known.authority == MADE.authority:
        assert made.authority is known.authority


def test_a_retired_authority_is_trusted_until_it_expires() -> None:
    due = NOW + AUTHORITY_LIFETIME * 0.7
    made = rotate_if_due(MADE, HOSTS, due)
    assert made.authority != MADE.authority
    assert made.previous_authorities == (MADE.authority.certificate,)
    straggler = issue_serving(MADE.authority, HOSTS, due)  # of a replica that has not noticed yet
    assert trusted(straggler.certificate, made.ca_bundle, HOSTS[0], due)
    later = rotate_if_due(made, HOSTS, NOW + AUTHORITY_LIFETIME + DAY)
    assert later.previous_authorities == ()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 900), min_size=1, max_size=8))
def test_looked_at_at_any_times_a_server_is_always_trusted_by_who_saw_the_last_bundle(
    days: list[int],
) -> None:
    credentials, moment = MADE, NOW
    for pause in days:
        before, moment = credentials, moment + pause * DAY
        credentials = rotate_if_due(before, HOSTS, moment)
        assert trusted(credentials.serving.certificate, credentials.ca_bundle, HOSTS[0], moment)
        assert rotate_if_due(credentials, HOSTS, moment) is credentials
        if not needs_rotation(before.serving.certificate, moment):
            assert trusted(before.serving.certificate, credentials.ca_bundle, HOSTS[0], moment)


def test_a_serving_certificate_never_outlives_its_authority() -> None:
    late = NOW + AUTHORITY_LIFETIME - 5 * DAY
    serving = x509.load_pem_x509_certificate(issue_serving(MADE.authority, HOSTS, late).certificate)
    authority = x509.load_pem_x509_certificate(MADE.authority.certificate)
    assert serving.not_valid_after_utc <= authority.not_valid_after_utc


def test_credentials_survive_the_way_through_a_secret() -> None:
    rotated = rotate_if_due(MADE, HOSTS, NOW + AUTHORITY_LIFETIME * 0.7)
    assert rotated.previous_authorities
    assert parse_secret_data(secret_data(rotated)) == rotated


@pytest.mark.parametrize("lost", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
def test_a_secret_that_is_not_whole_holds_no_credentials(lost: str) -> None:
    data = secret_data(MADE)
    assert parse_secret_data({key: value for key, value in data.items() if key != lost}) is None
    assert parse_secret_data({**data, "ca.crt": "bm9uc2Vuc2U="}) is None
    assert parse_secret_data({**data, lost: "no base64!"}) is None


BUNDLE = "dHJ1c3Q="


@pytest.mark.parametrize(
    ("bundles", "changed"),
    [([], []), ([BUNDLE], []), ([None], [0]), (["b2xk", BUNDLE, None], [0, 2])],
)
def test_only_webhooks_that_trust_something_else_are_patched(
    bundles: list[str | None], changed: list[int]
) -> None:
    webhooks = [{"clientConfig": {"caBundle": bundle} if bundle else {}} for bundle in bundles]
    patch = ca_bundle_patch({"metadata": {"resourceVersion": "7"}, "webhooks": webhooks}, b"trust")
    sets = [{"op": "add", "path": f"/webhooks/{i}/clientConfig/caBundle", "value": BUNDLE} for i in changed]
    guard = [{"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}]
    assert patch == (guard + sets if sets else [])


def test_lost_credentials_leave_authorities_that_others_may_serve_under():
    old, foreign = issue_authority(NOW), issue_serving(issue_authority(NOW), HOSTS, NOW)
    known_authorities = old.certificate + foreign.certificate + old.certificate
    fresh = rotate_if_due(None, HOSTS, NOW, known_authorities)
    assert fresh.previous_authorities == (old.certificate,)
    assert rotate_if_due(None, HOSTS, NOW, b"no PEM").previous_authorities == ()
    assert (
        rotate_if_due(None, HOSTS, NOW + 2 * AUTHORITY_LIFETIME, known_authorities).previous_authorities == ()
    )


def test_who_issued_a_certificate_is_trusted_for_it():
    ours, other = issue_authority(NOW), issue_authority(NOW)
    serving = issue_serving(ours, HOSTS, NOW)
    assert issued_by_one_of(serving, other.certificate + ours.certificate)
    assert not issued_by_one_of(serving, other.certificate)
    assert not issued_by_one_of(serving, b"")
    assert not issued_by_one_of(KeyPair(b"", b""), ours.certificate)
