"""What was disliked is known, but nobody takes it for liked."""

import numpy as np
import polars as pl
import pytest

from sadrec import SAD, Interactions
from sadrec.training.dataset import TrainingData, training_data


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


def test_the_order_of_what_does_not_count_is_not_learnt():
    stars = np.zeros((3, 6))
    stars[:, :3] = [5, 1, 3]
    weights = np.tile(np.array([1, 0, 1], np.float32), 3)
    weighted = training_data(Interactions.from_csr(stars), weights=weights)
    assert weighted.ordered()[:3].tolist() == [True, False, True]
    disliked = training_data(Interactions.from_csr(stars), dislikes=2)
    assert disliked.ordered() is None
    both = training_data(Interactions.from_csr(stars), weights=weights, dislikes=4)
    assert both.ordered() is None  # what was disliked counts, whatever its weight


def test_dislikes_of_their_own_are_known_and_below_0():
    rng = np.random.default_rng(0)
    liked, disliked = rng.random((2, 40, 30)) < 0.3
    likes, dislikes = (Interactions.from_csr(part.astype(np.float32)) for part in (liked, disliked))
    data = training_data(likes, dislikes=dislikes)
    assert data.triples == (liked | disliked).sum() and data.weights.dtype == np.int8
    np.testing.assert_array_equal(data.weights, np.where(disliked, -1, 1)[liked | disliked])
    np.testing.assert_array_equal(data.seen().toarray(), np.where(disliked, -1.0, liked))
    weights = rng.integers(0, 3, len(likes)).astype(np.float32)
    data = training_data(likes, dislikes=dislikes, weights=weights)
    expected = np.zeros(liked.shape)
    expected[liked] = weights
    np.testing.assert_array_equal(data.weights, np.where(disliked, -1, expected)[liked | disliked])


def test_ratings_below_a_number_are_below_0():
    stars = np.zeros((3, 6))
    stars[:, :3] = [5, 1, 3]
    data = training_data(Interactions.from_csr(stars), dislikes=2)
    assert data.weights.dtype == np.int8 and data.weights.tolist() == [1, -1, 1] * 3 and data.has_dislikes
    assert np.shares_memory(data.seen().indices, data.matrix.indices)


def test_one_matrix_of_likes_and_dislikes_is_made_once(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    data = Interactions.from_csr(rng.random((60, 40)) < 0.3)
    train, dislikes = data.split(test=0.2, seed=0)
    train, held_out = train.split(test=0.2, seed=1)
    made, join = [], TrainingData._merged

    def merged(self, ignored):
        made.append(self)
        return join(self, ignored)

    monkeypatch.setattr(TrainingData, "_merged", merged)
    model = SAD(factors=2, iterations=2)
    model.fit(train, dislikes=dislikes, validation=held_out, checkpoint=tmp_path, show_progress=False)
    assert len(made) == 1
