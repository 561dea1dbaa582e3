"""What was disliked is known, but nobody takes it for liked."""

import numpy as np
import polars as pl
import pytest

from sadrec import SAD, Interactions


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    pairs = np.argwhere(rng.random((40, 30)) < 0.3)
    frame = pl.DataFrame({"user": pairs[:, 0], "item": pairs[:, 1], "rating": rng.integers(1, 6, len(pairs))})
    data = Interactions.from_frame(frame)
    return SAD(factors=4, iterations=3).fit(data, dislikes=3, show_progress=False), data


def liked_and_disliked(data, user):
    row = data.matrix[[user]]
    return set(row.indices[row.data >= 3].tolist()), set(row.indices[row.data < 3].tolist())


def test_explanations_name_liked_items_only(fitted):
    model, data = fitted
    liked, disliked = liked_and_disliked(data, 0)
    other = next(item for item in range(30) if item not in liked | disliked)
    reason = model.explain(0, min(liked), other)
    assert set(reason.liked.tolist()) == liked


def test_a_recalculated_user_is_folded_in_from_what_they_liked(fitted):
    model, data = fitted
    liked, _ = liked_and_disliked(data, 1)
    ids, scores = model.recommend(1, N=5, recalculate_user=True)
    expected = model.recommend_for(sorted(liked), N=30)
    touched = set(data.matrix[[1]].indices.tolist())
    wanted = [(item, score) for item, score in zip(*expected, strict=True) if item not in touched][:5]
    assert ids.tolist() == [item for item, _ in wanted]
    np.testing.assert_allclose(scores, [score for _, score in wanted], rtol=1e-5)


def test_dislikes_survive_a_file_and_more_training(fitted, tmp_path):
    model, data = fitted
    model.save(tmp_path / "model.sad")
    loaded = SAD.load(tmp_path / "model.sad")
    loaded.partial_fit(Interactions.from_frame(pl.DataFrame({"user": [0], "item": [0]})), show_progress=False)
    liked, disliked = liked_and_disliked(data, 2)
    row = loaded.state.seen[[2]]
    assert set(row.indices[row.data < 0].tolist()) == disliked
    assert set(row.indices[row.data >= 0].tolist()) == liked
