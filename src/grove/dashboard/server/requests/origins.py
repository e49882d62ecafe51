"""Requests of other sites: which are refused. Pure.

The server of `grove dashboard` answers everyone who can connect, with the rights of its user. So a page of
another site must neither reach it under a name of its own (DNS rebinding) nor send it requests.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

_OWN_SITES = frozenset({"", "same-origin", "none"})


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_address(host: str) -> bool:
    """Whether a server can listen there without name resolution; empty means everywhere."""
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return host in ("", "localhost")


def loopback_hosts(port: int, bind: str = "127.0.0.1") -> frozenset[str]:
    """The Host headers of a server on loopback."""
    bound = f"[{bind}]" if ":" in bind else bind
    names = ("127.0.0.1", "localhost", "[::1]", bound)
    return frozenset((*(f"{name}:{port}" for name in names), *(names if port == 80 else ())))


def foreign_host(hosts: frozenset[str] | None, host: str) -> str:
    """Why a Host header is refused; empty if it is not. `hosts`: None if any is accepted."""
    if hosts is None or host.lower() in hosts:
        return ""
    return f"the Host header is not of this server: open http://{min(hosts)}"


def foreign_request(method: str, headers: Mapping[str, str], host: str, scheme: str) -> str:
    """Why a request to the API is refused that a page of another site sent; empty if it is not."""
    site = headers.get("Sec-Fetch-Site", "").lower()
    if site not in _OWN_SITES:
        return "the request is of another site: open the dashboard itself"
    origin = headers.get("Origin", "")
    if method == "POST" and origin and not _is_own(origin, host, scheme):
        return "the request has the Origin of another site: open the dashboard itself"
    return ""


def _is_own(origin: str, host: str, scheme: str) -> bool:
    try:
        sent = urlsplit(origin)
    except ValueError:
        return False
    return sent.scheme == scheme and sent.netloc.lower() == host.lower()
