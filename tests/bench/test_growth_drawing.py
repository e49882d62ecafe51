"""The curves of growth: an SVG that is complete, labelled and the same for the same results."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from bench.growth.chart import tick_step
from bench.growth.draw import svg

SVG = "{http://www.w3.org/2000/svg}"


def row(pods, cost):
    run = {"calls_per_pod": 6 * cost, "cpu_ms_per_pod": 3 * cost, "ready": pods / 50 * cost}
    return {"pods": pods, "floor": run, "ours": {**run, "rss_mib": 50 + pods / 100}}


def results(cost=1.0):
    rows = [row(1000, 1.0), row(10000, cost)]
    return {"one_pod_gangs": {"sizes": rows}, "gangs_of_8": {"sizes": rows}, "restart": {"pods": 10000}}


def drawn(found):
    return ElementTree.fromstring(svg(json.dumps(found)))


def texts(picture, tag):
    return [each.text for each in picture.iter(f"{SVG}{tag}")]


def test_picture_names_panels_axes_and_sizes():
    words = texts(drawn(results()), "text")
    for title in ("API calls per pod", "CPU per pod, ms", "Seconds until all pods are ready"):
        assert title in words
    assert words.count("pods") == 4
    assert words.count("1,000") == words.count("10,000") == 4
    assert "gangs of eight pods, contract floor" in words


def test_picture_has_a_title_and_figures_in_words():
    picture = drawn(results(cost=1.5))
    assert picture.get("role") == "img"
    assert texts(picture, "title")[0].startswith("Costs of the operator")
    (description,) = texts(picture, "desc")
    assert "gangs of one pod, 10,000 pods: 9.00 calls and 4.5 ms of CPU per pod, 150 MiB" in description


def test_each_value_is_a_point_of_its_curve():
    picture = drawn(results())
    points = [circle.find(f"{SVG}title").text for circle in picture.iter(f"{SVG}circle")]
    assert len(points) == 2 * 2 * (2 + 2 + 1 + 2)
    assert "gangs of one pod, operator: 6 at 1,000 pods" in points


def test_flat_curve_is_drawn_flat_and_growth_rises():
    assert heights(drawn(results()))[0] == pytest.approx(heights(drawn(results()))[1])
    first, last = heights(drawn(results(cost=1.5)))
    assert last < first


def heights(picture):
    """Of the first curve, of calls per pod; coordinates grow downwards."""
    return [float(circle.get("cy")) for circle in list(picture.iter(f"{SVG}circle"))[:2]]


def test_shape_without_results_is_left_out():
    found = results()
    del found["gangs_of_8"]
    assert not any("eight" in text for text in texts(drawn(found), "text"))


def test_results_without_sizes_have_no_picture():
    assert svg(json.dumps({"restart": {"pods": 10000}})) == ""


@pytest.mark.parametrize(("most", "step"), [(6.0, 2), (4.9, 1), (230, 50), (0.9, 0.2), (10, 2), (0, 1)])
def test_ticks_are_round_numbers(most, step):
    assert tick_step(most) == pytest.approx(step)
