"""The figures' helpers: what they draw, and that wrong shapes are refused in words."""

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from attention_course.plots import heat_map, heat_maps, spread


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_heat_map_shows_values_labels_and_limits():
    _, ax = plt.subplots()
    values = np.array([[0.25, 0.75, 0.0], [0.5, 0.1, 0.4]])
    image = heat_map(ax, values, ["a", "$b"], ["c", "d", "e"], limits=(0, 2), numbers=True)
    np.testing.assert_array_equal(image.get_array(), values)
    assert image.get_clim() == (0, 2)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", r"\$b"]
    assert [text.get_text() for text in ax.texts] == [
        "0.25",
        "0.75",
        "0.00",
        "0.50",
        "0.10",
        "0.40",
    ]
    ax.figure.canvas.draw()


def test_numbers_are_left_out_where_they_do_not_fit():
    _, ax = plt.subplots()
    heat_map(ax, np.zeros((3, 13)), numbers=True)
    assert not ax.texts


def test_heat_maps_share_one_scale():
    fig = heat_maps({"one": np.eye(3), "two": np.full((3, 3), 0.2)}, list("abc"), list("def"))
    images = [image for ax in fig.axes for image in ax.images]
    assert {image.get_clim() for image in images} == {(0.0, 1.0)}
    assert [ax.get_title() for ax in fig.axes[:2]] == ["one", "two"]


def test_spread_draws_mean_band_and_every_seed():
    _, ax = plt.subplots()
    runs = np.array([[1.0, 2.0], [3.0, 8.0]])
    line = spread(ax, [10, 20], runs, "runs")
    np.testing.assert_array_equal(line.get_ydata(), [2.0, 5.0])
    assert line.get_label() == "runs (2 seeds)"
    assert len(ax.lines) == 1 + len(runs)
    corners = ax.collections[0].get_paths()[0].vertices
    assert corners[:, 1].min() == 1 and corners[:, 1].max() == 8


@pytest.mark.parametrize(
    ("values", "rows", "complaint"),
    [
        (np.zeros(3), (), "2 axes"),
        (np.zeros((2, 3)), ["a"], "rows must be 2 labels; got 1"),
    ],
)
def test_wrong_heat_maps_are_refused(values, rows, complaint):
    _, ax = plt.subplots()
    with pytest.raises(ValueError, match=complaint):
        heat_map(ax, values, rows)


def test_wrong_runs_are_refused():
    _, ax = plt.subplots()
    with pytest.raises(ValueError, match="seeds, points"):
        spread(ax, [1, 2, 3], np.zeros((3, 2)))
    with pytest.raises(ValueError, match="empty"):
        heat_maps({})
