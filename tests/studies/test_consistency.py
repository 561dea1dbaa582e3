"""Which pairs one model orders rightly and another wrongly."""

import numpy as np
import pytest

from sadrec.evaluation import evaluate
from studies.table.consistency import consistency_report
from tests.evaluation import conftest as shared

make_ratings, factor_model, scores_model = shared.make_ratings, shared.factor_model, shared.scores_model


@pytest.fixture
def case(make_ratings, factor_model):
    data = make_ratings(users=40, items=60)
    train, held_out = data.leave_one_out(seed=0)
    return data, train, held_out, factor_model(data, seed=1), factor_model(data, seed=2, rivals=False)


def test_counts_and_pairs_are_what_a_plain_loop_gives(case):
    data, train, held_out, first, second = case
    report = consistency_report(first, second, train, held_out)
    expected, counts = set(), {}
    for row in range(40):
        for o, rating in zip(held_out.matrix[row].indices, held_out.matrix[row].data, strict=True):
            for j, r in zip(train.matrix[row].indices, train.matrix[row].data, strict=True):
                if r == rating:
                    continue
                i, k = (o, j) if rating > r else (j, o)
                right = tuple(bool(model.tensor(row)[i, k] > 0) for model in (first, second))
                user = int(data.users[row])
                counts.setdefault(user, dict.fromkeys([(a, b) for a in (0, 1) for b in (0, 1)], 0))[right] += 1
                if right[0] != right[1]:
                    expected.add((user, data.items[i], data.items[k], "SAD" if right[0] else "BPR"))
    assert set(report.pairs.select("user", "item", "rival", "right").rows()) == expected
    rows = {row["user"]: row for row in report.users.iter_rows(named=True)}
    for user, by in counts.items():
        row = rows[user]
        assert (row["both"], row["first"], row["second"], row["neither"]) == (
            by[1, 1],
            by[1, 0],
            by[0, 1],
            by[0, 0],
        )


def test_the_difference_per_user_is_that_of_unequal_accuracy(case):
    _, train, held_out, first, second = case
    report = consistency_report(first, second, train, held_out)
    accuracy = [evaluate(model, train, held_out)["unequal_accuracy"] for model in (first, second)]
    assert report.test.difference == pytest.approx(accuracy[0] - accuracy[1], abs=1e-6)
    assert "alone orders" in str(report)


def test_examples_are_right_by_the_first_and_wrong_by_the_second_with_titles(case):
    data, train, held_out, first, second = case
    titles = {item: f"The {item}" for item in data.items.tolist()}
    report = consistency_report(first, second, train, held_out, names=("A", "B"), titles=titles)
    for examples in (report.examples(8, seed=3), report.examples(8, strongest=True)):
        assert len(examples) == examples["user"].n_unique() == 8
        assert (examples["margin"] > 0).all()
        assert (examples["rival_margin"] <= 0).all()
        assert (examples["probability"] > 0.5).all()
        assert (examples["item_rating"] > examples["rival_rating"]).all()
        assert examples["item_title"].str.starts_with("The item").all()
    table = report.table(3)
    assert table.splitlines()[0] == "| user | item (rating) | rival (rating) | A x, p | B x, p |"
    assert len(table.splitlines()) == 5
    assert report.examples(5, seed=1).equals(report.examples(5, seed=1))


def test_models_without_probability_have_none(case, scores_model):
    data, train, held_out, first, _ = case
    plain = scores_model(data, np.random.default_rng(0).normal(size=data.matrix.shape))
    report = consistency_report(first, plain, train, held_out)
    assert report.pairs["rival_probability"].null_count() == len(report.pairs)
    assert report.pairs["probability"].null_count() == 0
    assert "|" in report.table(2)


def test_refusals(make_ratings, case):
    _, train, held_out, first, second = case
    with pytest.raises(ValueError, match="2 titles are given for 60 items"):
        consistency_report(first, second, train, held_out, titles=["a", "b"])
    alike = make_ratings(ratings=False)
    with pytest.raises(ValueError, match="needs ratings"):
        consistency_report(first, second, *alike.leave_one_out(seed=0))


def test_what_was_trained_on_cannot_be_held_out(case):
    _, train, _, first, second = case
    with pytest.raises(ValueError, match="held-out interactions are in the training part too"):
        consistency_report(first, second, train, train)
