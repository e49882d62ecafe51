"""The cluster's own certificate authorities, certificates and kubeconfigs.

The authorities are created once and kept with the state directory; all certificates are signed again at each
start, so that none expires on a cluster in use. There are three authorities, as in a normal cluster: a client
certificate of the cluster authority is accepted neither by etcd nor by the aggregation layer.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from grove.local.private_files import write_private

_AUTHORITY_DAYS = 3650
_CERTIFICATE_DAYS = 365
_SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)

_SERVER_ADDRESSES = ("127.0.0.1", "::1", "127.96.0.1")


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate and its key, as files."""

    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Pki:
    """Every certificate of a cluster."""

    folder: Path

    def pair(self, name: str) -> CertificateFiles:
        return CertificateFiles(self.folder / f"{name}.crt", self.folder / f"{name}.key")

    @property
    def service_account_key(self) -> Path:
        return self.folder / "service-account.key"

    @property
    def service_account_public_key(self) -> Path:
        return self.folder / "service-account.pub"


def issue_all(folder: Path, now: datetime.datetime) -> Pki:
    """Create missing authorities and sign all certificates again."""
    pki = Pki(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for authority in ("ca", "etcd-ca", "front-proxy-ca"):
        _ensure_authority(pki, authority, now)
    _ensure_service_account_key(pki)
    both = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
    _sign(pki, "etcd-ca", "etcd", now, usages=both, server=True)
    _sign(pki, "etcd-ca", "etcd-client", now, common_name="kube-apiserver-etcd-client")
    _sign(pki, "front-proxy-ca", "front-proxy-client", now)
    _sign(pki, "ca", "kube-apiserver", now, usages=both[:1], server=True)
    _sign(pki, "ca", "serving", now, common_name="localhost", usages=both[:1], server=True)
    _sign(
        pki, "ca", "kubelet-client", now, common_name="kube-apiserver-kubelet-client", group="system:masters"
    )
    _sign(pki, "ca", "admin", now, common_name="grove-admin", group="system:masters")
    _sign(pki, "ca", "kube-controller-manager", now, common_name="system:kube-controller-manager")
    _sign(pki, "ca", "kube-scheduler", now, common_name="system:kube-scheduler")
    # KWOK acts as all kubelets at once; no built-in role covers that.
    _sign(pki, "ca", "kwok", now, common_name="kwok", group="system:masters")
    _sign(pki, "ca", "init-containers", now, group="system:masters")
    _sign(pki, "ca", "dra-standin", now, group="system:masters")
    return pki


def sign_client(pki: Pki, name: str, now: datetime.datetime, *, group: str) -> None:
    """Sign a certificate for one more user of the cluster: `name`, in this group."""
    _sign(pki, "ca", name, now, group=group)


def write_kubeconfig(pki: Pki, client: str, server: str, path: Path) -> None:
    """Write a kubeconfig with inline certificates, so that it can be copied."""
    pair = pki.pair(client)
    cluster = {"server": server, "certificate-authority-data": _base64(pki.pair("ca").cert)}
    user = {"client-certificate-data": _base64(pair.cert), "client-key-data": _base64(pair.key)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "grove",
        "clusters": [{"name": "grove", "cluster": cluster}],
        "users": [{"name": client, "user": user}],
        "contexts": [{"name": "grove", "context": {"cluster": "grove", "user": client}}],
    }
    write_private(path, json.dumps(config, indent=2).encode())


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _ensure_authority(pki: Pki, name: str, now: datetime.datetime) -> None:
    pair = pki.pair(name)
    if pair.cert.exists() and pair.key.exists():
        return
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"grove {name}")
    certificate = (
        _builder(subject, key.public_key(), now, _AUTHORITY_DAYS)
        .issuer_name(subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write_pair(pair, certificate, key)


def _sign(
    pki: Pki,
    authority: str,
    name: str,
    now: datetime.datetime,
    *,
    common_name: str = "",
    group: str = "",
    usages: tuple[x509.ObjectIdentifier, ...] = (ExtendedKeyUsageOID.CLIENT_AUTH,),
    server: bool = False,
) -> None:
    issuer = pki.pair(authority)
    issuer_cert = x509.load_pem_x509_certificate(issuer.cert.read_bytes())
    issuer_key = serialization.load_pem_private_key(issuer.key.read_bytes(), None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(_subject(common_name or name, group), key.public_key(), now, _CERTIFICATE_DAYS)
        .issuer_name(issuer_cert.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )
    if server:
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in _SERVER_NAMES]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in _SERVER_ADDRESSES]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    _write_pair(pki.pair(name), builder.sign(issuer_key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _subject(common_name: str, group: str = "") -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _ensure_service_account_key(pki: Pki) -> None:
    if pki.service_account_key.exists() and pki.service_account_public_key.exists():
        return
    key = ec.generate_private_key(ec.SECP256R1())
    write_private(
        pki.service_account_public_key,
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        ),
    )
    write_private(pki.service_account_key, _pem(key))


def _write_pair(
    pair: CertificateFiles, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> None:
    write_private(pair.key, _pem(key))
    write_private(pair.cert, certificate.public_bytes(serialization.Encoding.PEM))


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
