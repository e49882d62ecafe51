"""Servers of texts and files on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web


@asynccontextmanager
async def serving(texts: Mapping[str, str], headers: Mapping[str, str] = {}) -> AsyncIterator[str]:
    """Serve texts by their paths; yields the address."""

    async def answer(request: web.Request) -> web.Response:
        if (text := texts.get(request.path)) is None:
            return web.Response(status=204)
        kind = "text/javascript" if request.path.endswith(".js") else "text/html"
        return web.Response(text=text, content_type=kind, headers=headers)

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    async with _running(application) as address:
        yield address


@asynccontextmanager
async def serving_folder(folder: Path, headers: Mapping[str, str] = {}) -> AsyncIterator[str]:
    """Serve the files of a folder under /static/, and an empty page; yields the address."""

    async def answer(request: web.Request) -> web.StreamResponse:
        file = folder / request.match_info["name"]
        return web.FileResponse(file, headers=headers) if file.is_file() else web.Response(status=404)

    async def empty(_request: web.Request) -> web.Response:
        html = "<!doctype html><html lang='en'><title>Modules</title><link rel='icon' href='data:,'>"
        return web.Response(text=html, content_type="text/html", headers=headers)

    application = web.Application()
    application.router.add_get("/", empty)
    application.router.add_get("/static/{name:.+}", answer)
    async with _running(application) as address:
        yield address


@asynccontextmanager
async def _running(application: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
