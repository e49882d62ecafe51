"""Generates the SSH key pair with which the pods of a DynamoGraphDeployment log in to each other."""

from __future__ import annotations

_BITS = 2048


def generate_key_pair() -> tuple[str, str]:
    """A new key pair, private and public, in OpenSSH's format. Takes long enough to need a thread."""
    from cryptography.hazmat.primitives import serialization  # takes 8 MiB, and few operators need it
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), f"{public.decode()}\n"
