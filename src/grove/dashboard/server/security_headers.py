"""The headers that every answer of the dashboard has."""

from __future__ import annotations

from aiohttp import web

from grove import timing

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}


def add_security_headers(application: web.Application, *, tls: bool) -> None:
    """Add the headers to every answer of an application, errors and streams included."""
    more = {"Strict-Transport-Security": f"max-age={timing.HSTS_SECONDS}"} if tls else {}
    headers = {**HEADERS, **more}

    async def add(_request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(headers)
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers["Server"] = "grove"  # the default names versions

    application.on_response_prepare.append(add)
