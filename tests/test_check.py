"""Checks of arguments: what is just allowed, and what is just not."""

import numpy as np
import pytest

from sadrec._core import check as _check

YES = [
    (_check.whole, 0, {}),
    (_check.whole, np.int8(3), {"least": 3, "most": 3}),
    (_check.number, 0, {}),
    (_check.number, 0.5, {"least": 0.5, "most": 0.5}),
    (_check.share, 0, {}),
    (_check.share, 1, {}),
    (_check.share, 0.01, {"inside": True}),
    (_check.flag, True, {}),
    (_check.flag, False, {}),
    (_check.one_of, "b", {"choices": ["a", "b"]}),
    (_check.seed, 0, {}),
    (_check.seed, 2**63 - 1, {}),
    (_check.threads, 1, {}),
    (_check.threads, 4096, {}),
]
NO = [
    (_check.whole, -1, {}),
    (_check.whole, 1.0, {}),
    (_check.whole, True, {}),
    (_check.whole, 2, {"least": 3}),
    (_check.whole, 4, {"most": 3}),
    (_check.number, -1e-9, {}),
    (_check.number, float("nan"), {}),
    (_check.number, "1", {}),
    (_check.number, 10**400, {}),
    (_check.number, 0.6, {"most": 0.5}),
    (_check.share, -1e-9, {}),
    (_check.share, 1.001, {}),
    (_check.share, 0, {"inside": True}),
    (_check.share, 1, {"inside": True}),
    (_check.flag, 1, {}),
    (_check.one_of, "c", {"choices": ["a", "b"]}),
    (_check.seed, -1, {}),
    (_check.seed, 2**63, {}),
    (_check.seed, 1.5, {}),
    (_check.threads, -1, {}),
    (_check.threads, 4097, {}),
]


@pytest.mark.parametrize(("check", "value", "limits"), YES)
def test_what_is_just_allowed_comes_back(check, value, limits):
    assert check(value, "it", **limits) == value


@pytest.mark.parametrize(("check", "value", "limits"), NO)
def test_what_is_just_not_allowed_is_refused_by_name(check, value, limits):
    with pytest.raises((TypeError, ValueError), match="it must be"):
        check(value, "it", **limits)


def test_all_cores_are_at_least_one_thread():
    assert _check.threads(0) >= 1


def test_seeds_are_drawn_from_a_generator():
    one, same = (_check.seed(np.random.default_rng(0)) for _ in range(2))
    assert one == same and 0 <= one < 2**63 and _check.seed(None) != _check.seed(None)


@pytest.mark.parametrize(
    ("values", "at"), [([], None), ([0, 4], None), ([0, 5], 1), ([0, 1, -1], 2), ([5, -1], 0), ([0, -1, 5], 1)]
)
def test_the_first_position_outside_is_found(values, at):
    assert _check.outside(np.array(values, np.int64), 5) == at


@pytest.mark.parametrize(
    ("values", "size", "message"),
    [
        ([0, 5], 5, r"^it holds 5 at position 1, but there are 5: give positions from 0 to 4"),
        ([[0, 5]], 5, r"^it holds 5, but there are 5"),
        ([0], 0, r"^it holds 0 at position 0, but there are none$"),
        ([0.5], 5, r"^it must be whole numbers, positions in 0..4, not float64 "),
    ],
)
def test_wrong_positions_are_named(values, size, message):
    with pytest.raises((TypeError, ValueError), match=message):
        _check.positions(values, size, "it")


def test_positions_keep_their_shape():
    for values in (np.array([[0, 4]], np.int8), np.zeros((0, 2))):
        checked = _check.positions(values, 5, "it")
        assert checked.dtype == np.int64 and checked.tolist() == values.tolist() and checked.shape == values.shape


@pytest.mark.parametrize(
    ("values", "least", "message"),
    [
        ([1, -1], 0, r"^it\[1\] is -1: it must be finite and not negative$"),
        ([[1, 2], [0.5, 3]], 1, r"^it\[1, 0\] is 0.5: it must be finite and at least 1$"),
        ([1, float("nan")], -np.inf, r"^it\[1\] is nan: it must be finite$"),
        ([1, 1e300], 0, r"^it\[1\] is 1e\+300: it must be finite and not negative$"),
        (["a"], 0, r"^it must be numbers, not <U1$"),
    ],
)
def test_wrong_numbers_are_named(values, least, message):
    with pytest.raises((TypeError, ValueError), match=message):
        _check.numbers(values, "it", least)


def test_numbers_come_back_in_single_precision():
    for values in ([], [0, 1], [[0.0], [2.5]]):
        checked = _check.numbers(values, "it", 0)
        assert checked.dtype == np.float32 and checked.tolist() == values
    with pytest.raises(ValueError, match="row 7 has the weight -1"):
        _check.numbers([1, -1], "it", 0, lambda at: f"row {at + 6} has the weight")


def test_bounds_are_told():
    for check, limits, bounds in (
        (_check.whole, {"least": 1}, "at least 1"),
        (_check.whole, {"most": 9}, "from 0 to 9"),
        (_check.number, {}, "0 or more"),
        (_check.number, {"most": 9}, "from 0 to 9"),
        (_check.share, {"inside": True}, "exclusive"),
    ):
        with pytest.raises(ValueError, match=f"{bounds}, not -2"):
            check(-2, "it", **limits)
    with pytest.raises(ValueError, match="it must be 'a', 'b' or 'c', not 'd'"):
        _check.one_of("d", "it", ["a", "b", "c"])
