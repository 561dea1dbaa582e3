"""What every estimator of the package must do, as tests to inherit.

In the tests of an estimator::

    from tests.contract import EstimatorContract

    class TestEASE(EstimatorContract):
        model = EASE

        def learnt(self, model):  # arrays that tell two fitted models apart
            return [model.weights]

Override ``settings`` (a small model that is fitted in a second), ``another`` (a setting and a value that differs from
it), ``learnt``, ``scores`` (users x items, where the model has no such verb), and ``personal`` (False for a model that
scores items alike for everybody) where the model needs it.
"""

import copy
import pickle
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec._core.settings import declared
from sadrec.data import Interactions, UnknownIdError
from sadrec.models import ModelFileError, NotFittedError

USERS, ITEMS = 60, 40


def checkerboard(n=USERS, m=ITEMS):
    """Even users like even items, odd users odd ones; every user lacks one item of their kind, which is ``missing``."""
    liked = (np.arange(n)[:, None] % 2) == (np.arange(m)[None, :] % 2)
    missing = 2 * (np.arange(n) % (m // 2)) % m + np.arange(n) % 2
    liked[np.arange(n), missing] = False
    return sp.csr_matrix(liked.astype(np.float32)), missing


def named_checkerboard():
    """The checkerboard with ids that are not positions."""
    matrix, _ = checkerboard()
    users, items = [f"user {u}" for u in range(USERS)], [f"item {i}" for i in range(ITEMS)]
    return Interactions.from_csr(matrix, users=users, items=items)


class EstimatorContract:
    """Tests of one estimator; see the module for what to override."""

    model: ClassVar[Any]
    settings: ClassVar[dict[str, Any]] = {}
    another: ClassVar[tuple[str, Any] | None] = None
    personal: ClassVar[bool] = True

    @classmethod
    def make(cls, **settings):
        return cls.model(**{**cls.settings, **settings})

    def learnt(self, model):
        return [model.user_factors, model.item_factors]

    def scores(self, model, users):
        return model.scores(users)

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls):
        return cls.make().fit(named_checkerboard(), show_progress=False)

    def has(self, setting):
        return setting in declared(type(self).model)

    def changed(self):
        """One setting, changed."""
        if self.another is None:
            pytest.skip("the model has no settings to change")
        return dict([self.another])

    # -- settings -----------------------------------------------------------------------------------------------------

    def test_settings_are_read_changed_and_cloned(self, fitted):
        model = self.make(**self.changed())
        assert model.get_params() == {**self.make().get_params(), **self.changed()}
        assert self.make().set_params(**self.changed()).get_params() == model.get_params()
        copied = fitted.clone(**self.changed())
        assert type(copied) is type(fitted) and not copied.is_fitted and fitted.is_fitted
        assert copied.get_params() == {**fitted.get_params(), **self.changed()}

    def test_scikit_learn_clones_it(self):
        from sklearn.base import clone

        model = self.make()
        assert type(clone(model)) is type(model) and clone(model).get_params() == model.get_params()

    def test_an_unknown_setting_is_refused_and_nothing_is_changed(self):
        model = self.make()
        with pytest.raises(ValueError, match=r"unknown setting 'nonsense'"):
            model.set_params(nonsense=1)
        with pytest.raises(ValueError, match=r"unknown setting 'nonsense'"):
            model.set_params(**({} if self.another is None else self.changed()), nonsense=1)
        assert model.get_params() == self.make().get_params()
        with pytest.raises(TypeError):
            self.make(nonsense=1)

    def test_every_setting_has_a_rule_and_a_help_and_is_in_the_docstring(self):
        for name, entry in declared(type(self).model).items():
            assert entry.metadata["rule"].describe() and len(entry.metadata["help"]) > 3
            assert f"\n{name}\n" in type(self).model.__doc__

    def test_repr_names_the_class_what_was_changed_and_whether_it_is_fitted(self, fitted):
        fresh = type(self).model(**({} if self.another is None else self.changed()))
        assert repr(fresh).startswith(f"<{type(fresh).__name__}(") and "not fitted" in repr(fresh)
        if self.another is not None:
            assert f"{self.another[0]}={self.another[1]!r}" in repr(fresh)
        assert "not fitted" not in repr(fitted)

    @pytest.mark.parametrize("seed", [-1, 2**63, 1.5, "seven", True])
    def test_a_bad_seed_is_refused(self, seed):
        if not self.has("random_state"):
            pytest.skip("nothing is random")
        with pytest.raises(ValueError, match="random_state must be"):
            self.make(random_state=seed).fit(named_checkerboard(), show_progress=False)

    @pytest.mark.parametrize("threads", [-1, 1.5, "all", True])
    def test_a_bad_number_of_threads_is_refused(self, threads):
        if not self.has("num_threads"):
            pytest.skip("there are no threads")
        with pytest.raises(ValueError, match="num_threads must be"):
            self.make(num_threads=threads).fit(named_checkerboard(), show_progress=False)

    # -- fitting ------------------------------------------------------------------------------------------------------

    def test_questions_before_fit_are_refused(self, tmp_path):
        model = self.make()
        assert not model.is_fitted and not hasattr(model, "no_such_thing")
        for ask in (lambda: model.users, lambda: model.items, lambda: self.scores(model, [0]),
                    lambda: model.save(tmp_path / "m")):  # fmt: skip
            with pytest.raises(NotFittedError, match="call fit first"):
                ask()
        assert not list(tmp_path.iterdir())

    def test_fit_returns_the_model(self):
        model = self.make()
        assert model.fit(named_checkerboard(), show_progress=False) is model and model.is_fitted

    def test_ids_are_what_they_were(self, fitted):
        data = named_checkerboard()
        np.testing.assert_array_equal(fitted.users, data.users)
        np.testing.assert_array_equal(fitted.items, data.items)

    def test_an_unknown_id_is_refused_by_name(self, fitted):
        with pytest.raises(UnknownIdError, match="unknown user 'nobody'"):
            self.scores(fitted, ["nobody"])

    def test_a_failed_fit_leaves_the_model_as_it_was(self):
        model = self.make().fit(named_checkerboard(), show_progress=False)
        before = copy.deepcopy(self.learnt(model))
        with pytest.raises(ValueError, match=r"(?i)nan"):
            model.fit(np.array([[1.0, np.nan]]), show_progress=False)
        for one, two in zip(before, self.learnt(model), strict=True):
            np.testing.assert_array_equal(one, two)

    def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads(self):
        threads = (1, 2, 3) if self.has("num_threads") else (1, 1)
        models = [
            self.make(**({"num_threads": count} if self.has("num_threads") else {})).fit(
                named_checkerboard(), show_progress=False
            )
            for count in threads
        ]
        for other in models[1:]:
            for one, two in zip(self.learnt(models[0]), self.learnt(other), strict=True):
                np.testing.assert_array_equal(one, two)

    # -- answers ------------------------------------------------------------------------------------------------------

    def test_the_missing_item_of_one_s_kind_is_the_best_that_is_left(self):
        if not self.personal:
            pytest.skip("everybody gets the same scores")
        data, missing = checkerboard()
        model = self.make().fit(data, show_progress=False)
        scores = np.array(self.scores(model, model.users))
        scores[data.nonzero()] = -np.inf
        assert (scores.argmax(axis=1) == missing).all()

    def test_batch_equals_single(self, fitted):
        some = fitted.users[[3, 0, 17]]
        together = np.asarray(self.scores(fitted, some))
        assert together.shape == (3, ITEMS) and np.isfinite(together).all()
        for row, user in enumerate(some):
            np.testing.assert_allclose(np.asarray(self.scores(fitted, [user]))[0], together[row], rtol=1e-6, atol=1e-6)

    # -- files --------------------------------------------------------------------------------------------------------

    def test_saved_and_loaded_it_is_the_same(self, fitted, tmp_path):
        fitted.save(tmp_path / "model")
        loaded = type(self).model.load(tmp_path / "model")
        assert type(loaded) is type(fitted) and loaded.get_params() == fitted.get_params()
        np.testing.assert_array_equal(loaded.users, fitted.users)
        np.testing.assert_array_equal(loaded.items, fitted.items)
        for one, two in zip(self.learnt(fitted), self.learnt(loaded), strict=True):
            np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(self.scores(loaded, loaded.users), self.scores(fitted, fitted.users))

    def test_a_damaged_file_is_refused(self, fitted, tmp_path):
        path = tmp_path / "model"
        fitted.save(path)
        whole = path.read_bytes()
        for damaged in (b"", whole[: len(whole) // 2], b"something else", whole[:-1] + bytes([whole[-1] ^ 1])):
            path.write_bytes(damaged)
            with pytest.raises(ModelFileError):
                type(self).model.load(path)
        with pytest.raises(FileNotFoundError):
            type(self).model.load(tmp_path / "none")

    def test_it_can_be_pickled(self, fitted):
        other = pickle.loads(pickle.dumps(fitted))
        for one, two in zip(self.learnt(fitted), self.learnt(other), strict=True):
            np.testing.assert_array_equal(one, two)
