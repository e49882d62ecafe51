"""Describes why a connection failed, in one line that names the remedy. Used by the transport."""

from __future__ import annotations

import os
import ssl


def connect_failure_reason(problem: BaseException | None) -> str:
    """Why the connection failed, and the remedy."""
    if isinstance(problem, ssl.CertificateError):
        return _certificate_failure_reason(problem)
    if isinstance(problem, ssl.SSLError):
        return (
            f"does not speak TLS with this client ({one_line(problem)}): check the server's address and port"
        )
    if isinstance(problem, OSError) and not isinstance(problem, TimeoutError):
        why = _os_error_text(problem)
        return f"cannot be reached ({why}): check that it runs, and the server's address"
    return "did not accept a connection in time: check the server's address and the network"


def _os_error_text(problem: OSError) -> str:
    """The message of the operating system; asyncio's would repeat the address."""
    if problem.errno and (problem.strerror or "").startswith("Connect call failed"):
        return os.strerror(problem.errno)
    return problem.strerror or one_line(problem)


def _certificate_failure_reason(problem: Exception) -> str:
    reason = getattr(problem, "verify_message", "") or one_line(problem)
    if "expired" in reason:
        return "presents a certificate that has expired: renew it, or check this machine's clock"
    if "mismatch" in reason or "not valid for" in reason:
        return (
            f"presents a certificate for another name ({reason}): correct the address or set tls-server-name"
        )
    return f"cannot be trusted ({reason}): set the cluster's certificate-authority to the one that signed it"


def one_line(problem: BaseException) -> str:
    return " ".join(str(problem).split()) or type(problem).__name__
