"""How soon a page shows the map in Chromium, how long its frames are, and what memory it needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import psutil
from playwright.async_api import Browser, Page, async_playwright

from bench.dashboard.dashboard_process import MIB, Served
from tools import browser as chromium

WINDOW = {"width": 1440, "height": 900}
STEPS = 120
"""Frames in which the whole map is scrolled through."""
CHANGES = 10_000
"""Milliseconds during which frames are measured while deltas arrive."""
OVERVIEW, CLOSE = "#/map", "#/map?zoom=14"
"""The whole cluster on one screen, and cells with the names of hosts."""

_DRAWN = """async () => {
  for (;;) {
    const element = document.querySelector(".map-scroll");
    if (element !== null) {
      const { mapOf } = await import("/static/js/map/page.js");
      if (mapOf(element)?.view.frameTime > 0) return performance.now();
    }
    await new Promise(requestAnimationFrame);
  }
}"""
_TIMES = """() => ({
  paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
  picture: performance.getEntriesByType("resource").find((each) => each.name.includes("picture")).responseEnd,
})"""
_SCROLL = """async (steps) => {
  const target = document.querySelector(".map-scroll");
  const room = target.scrollHeight - target.clientHeight;
  const frames = [];
  let before = await new Promise(requestAnimationFrame);
  for (let i = 0; i <= steps; i++) {
    target.scrollTop = (room * i) / steps;
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - before);
    before = now;
  }
  return { frames, room };
}"""
_FREE = """() => document.querySelector(".summary").textContent"""
_FRAMES = """async (milliseconds) => {
  const frames = [];
  let before = await new Promise(requestAnimationFrame);
  const end = before + milliseconds;
  while (before < end) {
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - before);
    before = now;
  }
  return frames;
}"""


class Frames(NamedTuple):
    """The time between frames, in milliseconds; 16.7 is the least."""

    median: float
    p95: float
    longest: float

    @classmethod
    def of(cls, times: list[float]) -> Frames:
        ordered = sorted(times)
        return cls(ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)], ordered[-1])


class PageTiming(NamedTuple):
    """In seconds from the request of the page on."""

    paint: float
    picture: float
    drawn: float
    scroll: Frames
    heap: float
    """The JavaScript heap after a collection, in MiB."""
    memory: float
    """The resident memory of the renderer, in MiB."""


@asynccontextmanager
async def started_browser() -> AsyncIterator[Browser]:
    """Chromium."""
    program = chromium.find()
    assert program is not None, chromium.MISSING
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program)
        yield browser
        await browser.close()


async def time_page(browser: Browser, served: Served) -> PageTiming:
    """Open the map in a new context, look closer, and scroll through it."""
    context = await browser.new_context(viewport=WINDOW)
    page = await context.new_page()
    before = _renderers()
    drawn = await _open(page, f"{served.address}{OVERVIEW}")
    times = await page.evaluate(_TIMES)
    await _open(page, f"{served.address}{CLOSE}")
    scrolled = await page.evaluate(_SCROLL, STEPS)
    assert scrolled["room"] > WINDOW["height"], "the map is not larger than the window"
    heap = await _heap(page)
    memory = max((each.memory_info().rss for each in _renderers() - before), default=0) / MIB
    await context.close()
    return PageTiming(
        times["paint"] / 1000, times["picture"] / 1000, drawn, Frames.of(scrolled["frames"]), heap, memory
    )


async def time_changes(browser: Browser, served: Served) -> dict[str, Frames]:
    """The frames while deltas arrive, by how close the map is seen."""
    found = {}
    for name, link in (("overview", OVERVIEW), ("close", CLOSE)):
        context = await browser.new_context(viewport=WINDOW)
        page = await context.new_page()
        await _open(page, f"{served.address}{link}")
        before = await page.evaluate(_FREE)
        found[name] = Frames.of(await page.evaluate(_FRAMES, CHANGES))
        assert before != await page.evaluate(_FREE), "no delta was shown"
        await context.close()
    return found


async def _open(page: Page, address: str) -> float:
    """Open a map in a new document. Returns after how many seconds it was drawn."""
    await page.goto("about:blank")
    await page.goto(address)
    async with asyncio.timeout(60.0):
        return float(await page.evaluate(_DRAWN)) / 1000


async def _heap(page: Page) -> float:
    session = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.collectGarbage")
    found: dict[str, Any] = await session.send("Runtime.getHeapUsage")
    return float(found["usedSize"]) / MIB


def _renderers() -> set[psutil.Process]:
    """The processes that run pages, of this process."""
    children = psutil.Process().children(recursive=True)
    return {each for each in children if "--type=renderer" in " ".join(_command(each))}


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
