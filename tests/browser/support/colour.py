"""Colours as people see them: contrast of WCAG, and distances with normal and with colour-blind vision."""

from __future__ import annotations

from itertools import combinations

Rgb = tuple[float, float, float]
Matrix = tuple[Rgb, Rgb, Rgb]

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB.
VISIONS: dict[str, Matrix] = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
_TO_LMS: Matrix = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_TO_LAB: Matrix = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


def linear(colour: str) -> Rgb:
    """The linear parts of `#rrggbb`."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return red, green, blue


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2, from 1 to 21."""
    light, dark = sorted((_luminance(each) for each in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def distance(one: str, other: str, vision: str = "normal") -> float:
    """The distance in OKLab, times 100: 2 is just noticeable, black and white are 100 apart."""
    first, second = (_oklab(_times(VISIONS[vision], linear(each))) for each in (one, other))
    return 100 * sum((a - b) ** 2 for a, b in zip(first, second, strict=True)) ** 0.5


def closest(colours: list[str], vision: str) -> tuple[float, str, str]:
    """The least distance of two of the colours, and which they are."""
    return min((distance(a, b, vision), a, b) for a, b in combinations(colours, 2))


def _luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _oklab(rgb: Rgb) -> Rgb:
    lms = _times(_TO_LMS, rgb)
    long, medium, short = (max(0.0, each) ** (1 / 3) for each in lms)
    return _times(_TO_LAB, (long, medium, short))


def _times(matrix: Matrix, vector: Rgb) -> Rgb:
    one, two, three = (sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)
    return one, two, three
