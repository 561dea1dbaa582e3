"""What every answer of this folder has in common."""

import dataclasses
import importlib
import pkgutil

import pytest

from sadrec import ranking

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
