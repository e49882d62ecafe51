"""The colours of gangs: seen on their background, told apart with colour-blind vision, and stable."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.browser.support.colour import VISIONS, closest, contrast

BACKGROUND = {"light": "#ffffff", "dark": "#0d1117"}
LEAST_CONTRAST = 3.0
"""Of graphical objects, by WCAG 2 (1.4.11)."""
LEAST_DISTANCE = 5.0
"""In OKLab; 2 is just noticeable side by side."""


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_each_colour_has_contrast_to_background(call, theme):
    for colour in await call("colours.js", "(colours, theme) => colours.PALETTE[theme]", theme):
        assert contrast(colour, BACKGROUND[theme]) >= LEAST_CONTRAST, colour


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_colours_stay_apart_with_colour_blindness(call, theme):
    palette = await call("colours.js", "(colours, theme) => colours.PALETTE[theme]", theme)
    for vision in VISIONS:
        found, one, other = closest(palette, vision)
        assert found >= LEAST_DISTANCE, f"{one} and {other} with {vision}"


LOOKS = """(colours, steps) => {
  const store = { picture: { gangs: {} } };
  const [light, dark] = [false, true].map((theme) => new colours.GangLooks(store, () => theme));
  return steps.map((gangs) => {
    const known = gangs.map((gang) => [gang, { set: gang.replace(/-\\d+$/, "") }]);
    store.picture.gangs = Object.fromEntries(known);
    return Object.fromEntries(gangs.map((gang) => [gang, [light.of(gang), dark.of(gang)].map((look, theme) =>
      [Object.values(colours.PALETTE)[theme].indexOf(look.colour), look.texture])]));
  });
}"""
"""By step and gang, the number of the colour and the texture in both themes."""
COLOURS, LOOK_COUNT = 7, 21


def gangs(*names: str, replicas: int) -> list[str]:
    return [f"team/{name}-{replica}" for name in names for replica in range(replicas)]


async def test_gang_keeps_its_look_in_both_themes(call):
    (found,) = await call("colours.js", LOOKS, [gangs("demo", replicas=30)])
    assert all(light == dark for light, dark in found.values())


async def test_gangs_look_different_as_long_as_there_are_looks(call):
    for names in (["a"], ["train", "serve", "x"], ["a", "b", "c", "d", "e", "f", "g"]):
        for count in range(1, LOOK_COUNT + 1):
            given = gangs(*names, replicas=LOOK_COUNT)[:: len(names)][:count]
            (found,) = await call("colours.js", LOOKS, [given])
            looks = [tuple(light) for light, _ in found.values()]
            assert len(set(looks)) == count
            assert len({colour for colour, _ in looks}) == min(count, COLOURS)


async def test_gang_keeps_its_look_while_others_come_and_go(call):
    first = gangs("a", "b", replicas=6)
    later = [*first[3:], *gangs("0", "c", replicas=4)]
    before, after = await call("colours.js", LOOKS, [first, later])
    assert all(before[gang] == after[gang] for gang in first[3:])
    assert len({str(look) for look in after.values()}) == len(later)


async def test_consecutive_gangs_of_set_differ(call):
    for names in (gangs("demo", replicas=10), gangs("demo-0-prefill", replicas=10)):
        (found,) = await call("colours.js", LOOKS, [names])
        assert all(one != other for one, other in pairwise(found[name] for name in names)), names
