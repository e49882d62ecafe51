"""When certificates are due for rotation, and how credentials are rotated."""

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
    is_issued_by,
    is_valid_for,
    issue_authority,
    issue_serving,
    needs_rotation,
    next_rotation,
    rotate_if_due,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
HOSTS = ("grove-operator.grove-system.svc", "127.0.0.1")
ISSUED = rotate_if_due(None, HOSTS, NOW)


def trusted(serving: bytes, ca_bundle: bytes, host: str, now: datetime) -> bool:
    """Whether a strict client accepts the server: chain, dates, names and usages."""
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
def test_certificate_is_due_after_two_thirds_of_lifetime(age: float, due: bool) -> None:
    assert needs_rotation(ISSUED.serving.certificate, NOW + SERVING_LIFETIME * age) is due
    assert needs_rotation(ISSUED.authority.certificate, NOW + AUTHORITY_LIFETIME * age) is due


@pytest.mark.parametrize(
    "broken", [b"", b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"]
)
def test_invalid_certificate_is_due_for_rotation(broken: bytes) -> None:
    assert needs_rotation(broken, NOW)


def test_new_credentials_are_accepted_by_strict_client() -> None:
    assert trusted(ISSUED.serving.certificate, ISSUED.ca_bundle, HOSTS[0], NOW)
    assert not trusted(ISSUED.serving.certificate, ISSUED.ca_bundle, "elsewhere.svc", NOW)
    assert not trusted(ISSUED.serving.certificate, issue_authority(NOW).certificate, HOSTS[0], NOW)


def test_valid_credentials_are_unchanged() -> None:
    assert rotate_if_due(ISSUED, HOSTS, NOW + DAY) is ISSUED
    assert next_rotation(ISSUED) > NOW + DAY


other = issue_authority(NOW)


@pytest.mark.parametrize(
    "known",
    [
        ServingCredentials(ISSUED.authority, KeyPair(b"", b"")),
        ServingCredentials(ISSUED.authority, KeyPair(ISSUED.serving.certificate, other.key)),
        ServingCredentials(ISSUED.authority, issue_serving(other, HOSTS, NOW)),
        ServingCredentials(ISSUED.authority, issue_serving(ISSUED.authority, HOSTS[:1], NOW)),
        ServingCredentials(ISSUED.authority, issue_serving(ISSUED.authority, HOSTS, NOW - 300 * DAY)),
        ServingCredentials(KeyPair(ISSUED.authority.certificate, b""), ISSUED.serving),
        ServingCredentials(KeyPair(b"", b""), ISSUED.serving),
    ],
    ids=["empty", "wrong key", "wrong authority", "missing host", "old", "no authority key", "no authority"],
)
def test_only_invalid_parts_are_replaced(known: ServingCredentials) -> None:
    rotated = rotate_if_due(known, HOSTS, NOW)
    assert is_valid_for(rotated.serving, rotated.authority.certificate, HOSTS)
    assert has_its_key(rotated.serving)
    assert has_its_key(rotated.authority)
    assert trusted(rotated.serving.certificate, rotated.ca_bundle, HOSTS[0], NOW)
    if known.authority == ISSUED.authority:
        assert rotated.authority is known.authority


def test_previous_authority_is_trusted_until_it_expires() -> None:
    due = NOW + AUTHORITY_LIFETIME * 0.7
    rotated = rotate_if_due(ISSUED, HOSTS, due)
    assert rotated.authority != ISSUED.authority
    assert rotated.previous_authorities == (ISSUED.authority.certificate,)
    outdated = issue_serving(ISSUED.authority, HOSTS, due)  # of a replica that has not rotated yet
    assert trusted(outdated.certificate, rotated.ca_bundle, HOSTS[0], due)
    later = rotate_if_due(rotated, HOSTS, NOW + AUTHORITY_LIFETIME + DAY)
    assert later.previous_authorities == ()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 900), min_size=1, max_size=8))
def test_rotation_at_any_time_keeps_server_trusted(
    days: list[int],
) -> None:
    credentials, now = ISSUED, NOW
    for pause in days:
        before, now = credentials, now + pause * DAY
        credentials = rotate_if_due(before, HOSTS, now)
        assert trusted(credentials.serving.certificate, credentials.ca_bundle, HOSTS[0], now)
        assert rotate_if_due(credentials, HOSTS, now) is credentials
        if not needs_rotation(before.serving.certificate, now):
            assert trusted(before.serving.certificate, credentials.ca_bundle, HOSTS[0], now)


def test_serving_certificate_never_outlives_authority() -> None:
    late = NOW + AUTHORITY_LIFETIME - 5 * DAY
    serving = x509.load_pem_x509_certificate(issue_serving(ISSUED.authority, HOSTS, late).certificate)
    authority = x509.load_pem_x509_certificate(ISSUED.authority.certificate)
    assert serving.not_valid_after_utc <= authority.not_valid_after_utc


def test_credentials_survive_a_round_trip_through_secret() -> None:
    rotated = rotate_if_due(ISSUED, HOSTS, NOW + AUTHORITY_LIFETIME * 0.7)
    assert rotated.previous_authorities
    assert parse_secret_data(secret_data(rotated)) == rotated


@pytest.mark.parametrize("lost", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
def test_incomplete_secret_has_no_credentials(lost: str) -> None:
    data = secret_data(ISSUED)
    assert parse_secret_data({key: value for key, value in data.items() if key != lost}) is None
    assert parse_secret_data({**data, "ca.crt": "bm9uc2Vuc2U="}) is None
    assert parse_secret_data({**data, lost: "no base64!"}) is None


BUNDLE = "dHJ1c3Q="


@pytest.mark.parametrize(
    ("bundles", "changed"),
    [([], []), ([BUNDLE], []), ([None], [0]), (["b2xk", BUNDLE, None], [0, 2])],
)
def test_only_webhooks_with_other_ca_bundle_are_patched(
    bundles: list[str | None], changed: list[int]
) -> None:
    webhooks = [{"clientConfig": {"caBundle": bundle} if bundle else {}} for bundle in bundles]
    patch = ca_bundle_patch({"metadata": {"resourceVersion": "7"}, "webhooks": webhooks}, b"trust")
    sets = [{"op": "add", "path": f"/webhooks/{i}/clientConfig/caBundle", "value": BUNDLE} for i in changed]
    guard = [{"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}]
    assert patch == (guard + sets if sets else [])


def test_lost_credentials_keep_known_own_authorities():
    old, foreign = issue_authority(NOW), issue_serving(issue_authority(NOW), HOSTS, NOW)
    known_authorities = old.certificate + foreign.certificate + old.certificate
    fresh = rotate_if_due(None, HOSTS, NOW, known_authorities)
    assert fresh.previous_authorities == (old.certificate,)
    assert rotate_if_due(None, HOSTS, NOW, b"no PEM").previous_authorities == ()
    assert (
        rotate_if_due(None, HOSTS, NOW + 2 * AUTHORITY_LIFETIME, known_authorities).previous_authorities == ()
    )


def test_is_issued_by_checks_each_authority():
    authority, other = issue_authority(NOW), issue_authority(NOW)
    serving = issue_serving(authority, HOSTS, NOW)
    assert is_issued_by(serving, other.certificate + authority.certificate)
    assert not is_issued_by(serving, other.certificate)
    assert not is_issued_by(serving, b"")
    assert not is_issued_by(KeyPair(b"", b""), authority.certificate)
