"""`grove webhooks`: prints the webhook configurations for an operator that runs outside of the cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from grove.api.configuration.loading import ConfigurationError, load
from grove.api.configuration.types import OperatorConfiguration
from grove.cli.commands.crds import render
from grove.cli.commands.operator import read
from grove.kube.errors import ConfigError
from grove.webhooks.registrations import UrlAddress, configurations


def webhooks(*, url: str, ca: Path | None = None, config: Path | None = None, user: str = "") -> None:
    """Print the webhook configurations for an operator that runs outside of the cluster.

    They are those of the chart, with a URL in place of the Service. Pass the output to kubectl apply -f -,
    and before the operator is stopped for good to kubectl delete -f -: without an operator that answers, the
    API server refuses PodCliqueSets. Run grove detach afterwards.

    Parameters
    ----------
    url
        Address of the operator as the API server reaches it, for example https://127.0.0.1:2750.
    ca
        File with the CA of the operator's certificate, in PEM. Without it, the operator issues a certificate
        for the host of the URL and writes its CA into the configurations (certProvisionMode: auto).
    config
        Configuration of the operator; it says whether the authorizer and Dynamo are enabled.
    user
        User name of the operator, whose own requests are then not reviewed.
    """
    settings = _configuration(config)
    found = configurations(
        UrlAddress(_base(url)),
        operator=user,
        authorizer=settings.authorizer.enabled,
        dynamo=settings.dynamo.enabled,
        exempt=settings.authorizer.exempt_service_account_user_names,
        ca_bundle=b"" if ca is None else _authority(ca),
    )
    sys.stdout.write("".join(map(render, found)))


def _configuration(file: Path | None) -> OperatorConfiguration:
    try:
        return load(None if file is None else read(file))
    except ConfigurationError as error:
        raise ConfigError("; ".join(f"{file}: {problem}" for problem in error.problems)) from None


def _base(url: str) -> str:
    """The URL without a slash at its end. Raises ConfigError for a URL that the API server would refuse."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises if it is not a number up to 65535
    except ValueError:
        raise ConfigError(f"--url {url}: not a URL: write https://HOST:PORT") from None
    if parts.scheme != "https" or not parts.hostname:
        raise ConfigError(
            f"--url {url}: the API server calls webhooks by https only: write https://HOST:PORT"
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigError(f"--url {url}: must have no user, query or fragment: write https://HOST:PORT")
    return url.rstrip("/")


def _authority(file: Path) -> bytes:
    """The certificates of a PEM file, and nothing else that it contains: a private key must not get into the
    cluster. Raises ConfigError."""
    try:
        found = x509.load_pem_x509_certificates(file.read_bytes())
    except OSError as problem:
        raise ConfigError(f"--ca {file}: cannot be read ({problem.strerror}): check the path") from None
    except ValueError:
        raise ConfigError(f"--ca {file}: has no valid certificate: write it in PEM") from None
    return b"".join(each.public_bytes(Encoding.PEM) for each in found)
