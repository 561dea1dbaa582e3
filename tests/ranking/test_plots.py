"""Pictures can be made and saved, without a screen."""

import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need the plot extra")

from sadrec.ranking import plot_tournament
from sadrec.ranking.cycles import cycles
from sadrec.ranking.plots import plot_intransitivity
from sadrec.ranking.tournament import Tournament, tournament

NAMES = ["rock", "paper", "scissors", "air"]


def _texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_a_ring_names_the_items_of_the_cycle_and_the_margin_of_each_step(rock_paper_scissors, tmp_path):
    figure = plot_tournament(tournament(rock_paper_scissors, 0, None, NAMES), title="A game")
    texts = _texts(figure)
    assert {"rock", "paper", "scissors"} <= set(texts)
    assert "air" not in texts
    assert {"2\n88 %", "3\n95 %", "1\n73 %"} <= set(texts)
    assert len(figure.axes[0].patches) == 3
    figure.savefig(tmp_path / "ring.png")
    assert (tmp_path / "ring.png").stat().st_size > 1000


def test_a_given_cycle_is_drawn(rock_paper_scissors):
    game = tournament(rock_paper_scissors, 0, None)
    figure = plot_tournament(game, cycles(game)[0], names=NAMES)
    assert "scissors" in _texts(figure)


def test_the_matrix_marks_wins_against_the_order(rock_paper_scissors):
    figure = plot_tournament(tournament(rock_paper_scissors, 0, None, NAMES))
    assert len(figure.axes[1].lines) == 1


def test_without_a_cycle_it_says_so():
    scores = np.arange(3.0)
    figure = plot_tournament(Tournament(np.arange(3), scores[:, None] - scores))
    assert any("No cycle" in text for text in _texts(figure))
    assert len(figure.axes[1].lines) == 0


def test_a_cycle_below_the_bar_is_not_drawn(rock_paper_scissors):
    figure = plot_tournament(tournament(rock_paper_scissors, 0, None, NAMES), minimum=1.0)
    assert "No cycle of wins\nby more than 1" in _texts(figure)


def test_long_names_are_cut():
    scores = np.arange(2.0)
    figure = plot_tournament(Tournament(np.array(["x" * 80, "y"]), scores[:, None] - scores))
    assert max(len(label.get_text()) for label in figure.axes[1].get_yticklabels()) < 45


def test_a_histogram_counts_all_users(tmp_path):
    shares = np.linspace(0, 0.3, 200)
    figure = plot_intransitivity(shares, title="Users")
    assert sum(patch.get_height() for patch in figure.axes[0].patches) == 200
    figure.savefig(tmp_path / "shares.png")


def test_all_zero_shares_can_be_drawn():
    figure = plot_intransitivity(np.zeros(10))
    assert sum(patch.get_height() for patch in figure.axes[0].patches) == 10


def test_what_is_wrong_is_named(rock_paper_scissors):
    with pytest.raises(ValueError, match="no items"):
        plot_tournament(Tournament(np.empty(0), np.zeros((0, 0))))
    with pytest.raises(ValueError, match="names"):
        plot_tournament(tournament(rock_paper_scissors, 0, None), names=["one"])
    with pytest.raises(ValueError, match="between 0 and 1"):
        plot_intransitivity([2.0])


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # cannot be imported
    with pytest.raises(ImportError, match=r"sadrec\[plot\]"):
        plot_intransitivity([0.1])


def test_a_notebook_shows_a_picture_by_itself():
    assert plot_intransitivity([0.1])._repr_png_().startswith(b"\x89PNG")
