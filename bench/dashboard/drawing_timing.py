"""The same 40,000 rectangles on a canvas and as SVG, in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiohttp import web
from playwright.async_api import Browser

from bench.dashboard.page_timing import WINDOW

FOLDER = Path(__file__).parent / "drawing"
CELLS = 40_000


async def compare(browser: Browser) -> dict[str, Any]:
    """By step, the milliseconds of both, and how many times longer SVG takes."""
    app = web.Application()
    app.router.add_get("/", lambda _: web.FileResponse(FOLDER / "index.html"))
    app.router.add_get("/drawing.js", lambda _: web.FileResponse(FOLDER / "drawing.js"))
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    page = await browser.new_page(viewport=WINDOW)
    await page.goto(f"http://127.0.0.1:{runner.addresses[0][1]}/")
    await page.wait_for_selector("html[data-ready]")
    found: dict[str, dict[str, float]] = await page.evaluate("(cells) => compare(cells)", CELLS)
    await page.close()
    await runner.cleanup()
    canvas, svg = found["canvas"], found["svg"]
    return {
        step: {"canvas": canvas[step], "svg": svg[step], "svg_times_canvas": svg[step] / canvas[step]}
        for step in canvas
    }
