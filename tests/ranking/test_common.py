"""What the answers and the functions of this folder have in common."""

import dataclasses
import importlib
import inspect
import pkgutil

import pytest

from sadrec import ranking
from sadrec.ranking.top_n import ItemIndex

MODULES = [
    importlib.import_module(f"sadrec.ranking.{module.name}") for module in pkgutil.iter_modules(ranking.__path__)
]
RECORDS = {
    value
    for module in MODULES
    for value in vars(module).values()
    if dataclasses.is_dataclass(value) and value.__module__ == module.__name__
}


@pytest.mark.parametrize("record", sorted(RECORDS, key=lambda record: record.__name__))
def test_an_answer_cannot_be_changed_and_compares_by_identity_where_it_holds_arrays(record):
    parameters = record.__dataclass_params__
    assert parameters.frozen
    assert parameters.eq == (record.__name__ == "Spoiler")  # the one that holds names alone


# N is how many are shown; the penalties and pairs are those that the documentation names.
USUAL = {
    "N": {5, 10},
    "minimum": {0},
    "strongest": {10},
    "largest": {5},
    "level": {0.9},
    "candidates": {1, 200},
    "regularization": {0.01},
    "num_threads": {0},
    "near": {1e-9},
    "own_scale": {0},
    "pair_part": {0},
    "has_bias": {False},
    "leave_out_liked": {True},
}


def test_an_argument_that_is_not_given_is_the_same_everywhere():
    functions = [value for module in MODULES for value in vars(module).values() if inspect.isroutine(value)]
    functions += [value for record in RECORDS | {ItemIndex} for value in (record, *vars(record).values())]
    for function in functions:
        if callable(function) and getattr(function, "__module__", "").startswith("sadrec.ranking"):
            for name, parameter in inspect.signature(function).parameters.items():
                if name in USUAL and isinstance(parameter.default, int | float):
                    assert parameter.default in USUAL[name], (function, name)
