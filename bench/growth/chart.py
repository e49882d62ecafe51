"""Line charts as SVG: panels in two columns, curves of the operator solid and of the floor dashed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEAD, ROW = 880, 90, 280
LEFT, RIGHT, TOP, BOTTOM = 58, 22, 38, 48
"""Margins of a panel, for its labels."""
COLOURS = ("#1f6f43", "#1d4ed8")
DASHES = ' stroke-dasharray="6 4"'
TICKS = 5
"""Lines of the grid, about."""
STYLE = """
    .axis { stroke: #6b7280; fill: none } .grid { stroke: #e5e7eb } .dim { fill: #4b5563; font-size: 12px }
    .size { font-size: 11px } .curve { fill: none; stroke-width: 2 }
  """


class Curve(NamedTuple):
    """Values by number of pods; `floor`: of the floor, not of the operator."""

    label: str
    floor: bool
    points: tuple[tuple[int, float], ...]


class Panel(NamedTuple):
    """One chart. Both of its axes begin at zero, so that flat curves look flat."""

    title: str
    curves: tuple[Curve, ...]


class Scaling(NamedTuple):
    """From values to coordinates of the picture."""

    x: float
    y: float
    width: float
    height: float
    most_pods: int
    most: float

    def at(self, pods: float, value: float) -> tuple[float, float]:
        return self.x + self.width * pods / self.most_pods, self.y + self.height * (1 - value / self.most)


def picture(title: str, description: str, panels: Sequence[Panel]) -> str:
    """The whole picture."""
    height = HEAD + ROW * math.ceil(len(panels) / 2)
    labels = dict.fromkeys(each.label for panel in panels for each in panel.curves)
    colours = dict(zip(labels, COLOURS, strict=False))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-labelledby="title desc" font-family="system-ui, sans-serif" font-size="14">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(description)}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff" rx="8"/>',
        f'<text x="{LEFT}" y="30" font-size="17" font-weight="600">{escape(title)}</text>',
        *_legend(colours),
    ]
    for number, panel in enumerate(panels):
        x, y = number % 2 * WIDTH / 2, HEAD + number // 2 * ROW
        parts += _panel(panel, colours, x, y)
    return "\n  ".join(parts) + "\n</svg>\n"


def _legend(colours: dict[str, str]) -> Iterator[str]:
    """A line for each colour."""
    for number, (label, colour) in enumerate(colours.items()):
        y = 54 + 20 * number
        for x, run, dashes in ((LEFT, "operator", ""), (LEFT + 240, "contract floor", DASHES)):
            yield f'<path class="curve" stroke="{colour}"{dashes} d="M{x} {y - 4} h30"/>'
            yield f'<text class="dim" x="{x + 36}" y="{y}">{escape(f"{label}, {run}")}</text>'


def _panel(panel: Panel, colours: dict[str, str], x: float, y: float) -> Iterator[str]:
    points = [point for curve in panel.curves for point in curve.points]
    step = tick_step(max((value for _, value in points), default=1))
    most = step * max(1, math.ceil(max((value for _, value in points), default=1) / step))
    sizes = sorted({pods for pods, _ in points}) or [1]
    inner = (x + LEFT, y + TOP, WIDTH / 2 - LEFT - RIGHT, ROW - TOP - BOTTOM)
    scaling = Scaling(*inner, sizes[-1], most)
    yield f'<text x="{x + LEFT:.0f}" y="{y + 20:.0f}" font-weight="600">{escape(panel.title)}</text>'
    yield from _axes(scaling, step, sizes)
    for curve in panel.curves:
        yield from _curve(curve, colours[curve.label], scaling)


def _axes(scaling: Scaling, step: float, sizes: list[int]) -> Iterator[str]:
    for number in range(round(scaling.most / step) + 1):
        x, y = scaling.at(0, number * step)
        yield f'<path class="grid" d="M{x:.1f} {y:.1f} h{scaling.width:.1f}"/>'
        label = f"{number * step:,.10g}"
        yield f'<text class="dim" x="{x - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    x, y = scaling.at(0, 0)
    yield f'<path class="axis" d="M{x:.1f} {scaling.y:.1f} V{y:.1f} h{scaling.width:.1f}"/>'
    for pods in sizes:
        x, _ = scaling.at(pods, 0)
        yield f'<path class="axis" d="M{x:.1f} {y:.1f} v5"/>'
        yield f'<text class="dim size" x="{x:.1f}" y="{y + 19:.1f}" text-anchor="middle">{pods:,}</text>'
    middle = scaling.x + scaling.width / 2
    yield f'<text class="dim" x="{middle:.1f}" y="{y + 36:.1f}" text-anchor="middle">pods</text>'


def _curve(curve: Curve, colour: str, scaling: Scaling) -> Iterator[str]:
    at = [scaling.at(pods, value) for pods, value in curve.points]
    line = " L".join(f"{x:.1f} {y:.1f}" for x, y in at)
    yield f'<path class="curve" stroke="{colour}"{DASHES if curve.floor else ""} d="M{line}"/>'
    run = "contract floor" if curve.floor else "operator"
    for (x, y), (pods, value) in zip(at, curve.points, strict=True):
        # Open circles for the floor: curves that lie on each other can still be read.
        fill, radius = ("#fff", 4) if curve.floor else (colour, 3)
        words = f"{curve.label}, {run}: {value:.4g} at {pods:,} pods"
        yield (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}" stroke="{colour}">'
            f"<title>{escape(words)}</title></circle>"
        )


def tick_step(most: float) -> float:
    """The distance of two ticks: 1, 2 or 5 times a power of ten, with about five ticks up to `most`."""
    if most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most / TICKS))
    return next(power * factor for factor in (1, 2, 5, 10) if most / (power * factor) <= TICKS)
