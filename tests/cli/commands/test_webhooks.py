"""`grove webhooks`."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from grove.cli.main import main
from grove.kube.certs.certificates import issue_authority
from grove.webhooks.registrations import UrlAddress, configurations

URL = "https://operator.example.com:2750"
AUTHORITY = issue_authority(datetime.now(UTC))
EXEMPT = "system:serviceaccount:kube-system:generic-garbage-collector"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    with pytest.raises(SystemExit) as ended:
        main(["webhooks", *arguments])
    out, err = capsys.readouterr()
    assert (ended.value.code or 0, err) == (0, "")
    return list(yaml.safe_load_all(out))


def test_configurations_are_those_that_the_operator_serves(capsys):
    found = printed(capsys, "--url", URL)
    assert found == configurations(UrlAddress(URL))
    assert [body["metadata"]["name"] for body in found] == [
        "podcliqueset-defaulting-webhook",
        "podcliqueset-validating-webhook",
        "clustertopology-validating-webhook",
    ]
    clients = [webhook["clientConfig"] for body in found for webhook in body["webhooks"]]
    assert clients[0] == {"url": f"{URL}/webhooks/default-podcliqueset"}
    assert all(client["url"].startswith(f"{URL}/webhooks/") for client in clients)


def test_configuration_file_decides_which_are_printed(tmp_path, capsys):
    file = tmp_path / "config.yaml"
    authorizer = f"authorizer: {{enabled: true, exemptServiceAccountUserNames: ['{EXEMPT}']}}"
    file.write_text(f"{authorizer}\ndynamo: {{enabled: true}}\n")
    found = printed(capsys, "--url", URL, "--config", str(file), "--user", "me")
    expected = configurations(UrlAddress(URL), operator="me", authorizer=True, dynamo=True, exempt=(EXEMPT,))
    assert found == expected
    assert len(found) == 6
    assert EXEMPT in str(found)
    assert 'request.userInfo.username != "me"' in str(found)


def test_ca_bundle_has_the_certificates_of_the_file_only(tmp_path, capsys):
    file = tmp_path / "ca.pem"
    file.write_bytes(AUTHORITY.key + b"a comment\n" + AUTHORITY.certificate)
    for body in printed(capsys, "--url", f"{URL}/", "--ca", str(file)):
        for webhook in body["webhooks"]:
            assert base64.b64decode(webhook["clientConfig"]["caBundle"]) == AUTHORITY.certificate
            assert webhook["clientConfig"]["url"].count("//") == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "--url is missing: grove webhooks --help describes it"),
        (["--url", "http://a"], "--url http://a: the API server calls webhooks by https only: write "),
        (["--url", "operator:2750"], "--url operator:2750: the API server calls webhooks by https only: "),
        (["--url", "https://"], "--url https://: the API server calls webhooks by https only: write "),
        (["--url", "https://a:b"], "--url https://a:b: not a URL: write https://HOST:PORT"),
        (["--url", "https://me@a"], "--url https://me@a: must have no user, query or fragment: "),
        (["--url", "https://a?b"], "--url https://a?b: must have no user, query or fragment: "),
        (["--url", URL, "--ca", "/nowhere"], "--ca /nowhere: cannot be read (No such file or directory): "),
        (["--url", URL, "--ca", __file__], f"--ca {__file__}: has no valid certificate: write it in PEM"),
        (["--url", URL, "--config", "/nowhere"], "/nowhere: cannot be read (No such file or directory): "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_option_is_one_line(arguments, line, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["webhooks", *arguments])
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"grove: {line}")
