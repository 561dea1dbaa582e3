"""Errors recommend only what exists, and what they recommend works."""

import ast
import contextlib
import importlib
import inspect
import re
import tomllib
from pathlib import Path

import click
import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import sadrec
from sadrec import BPR, SAD, Comparisons, GibbsSAD, Interactions
from sadrec._core.settings import opened
from sadrec.cli import COMMANDS, main
from sadrec.data import Items, simulate
from sadrec.evaluation import Popularity, compare, evaluate, evaluate_comparisons, evaluate_top_n, tune

SOURCES = Path(sadrec.__file__).parent
MODULES = ("", ".data", ".features", ".models", ".ranking", ".evaluation", ".posterior", ".cluster", ".serving",
           ".integrations.sklearn")  # fmt: skip
FOREIGN = {"DataFrame", "to_numpy", "tocsr", "tolist", "write_parquet", "coo_array", "get_params"}
"""Functions of other libraries, and of models that callers bring."""
FOREIGN_ARGUMENTS = {"schema", "orient", "fallback"}
"""Arguments of other libraries, and of questions to the service."""


def messages():
    """Yield the text of every error, warning and constant of the package, with its place."""
    for path in sorted(SOURCES.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            warns = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("warn")
            constant = isinstance(node, ast.Assign) and node in tree.body
            if isinstance(node, ast.Raise) or warns or constant:
                texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
                text = " ".join(each for each in texts if isinstance(each, str))
                if text and not re.search(r"<\w+|; charset", text):
                    yield f"{path.relative_to(SOURCES)}:{node.lineno}", text


def public():
    """Return the names of the public interface, and of all arguments of its functions and settings."""
    names, arguments = set(), set()
    for module in MODULES:
        package = importlib.import_module("sadrec" + module)
        for name in dir(package):
            value = getattr(package, name, None)
            names.add(name)
            members = {name: value} | (dict(inspect.getmembers(value)) if inspect.isclass(value) else {})
            names |= set(members)
            for one in members.values():
                if callable(one):
                    with contextlib.suppress(ValueError, TypeError):
                        arguments |= set(inspect.signature(one).parameters)
    return names, arguments


def test_every_message_names_commands_options_functions_and_extras_that_exist():
    commands = [main.get_command(click.Context(main), name) for name in COMMANDS]
    parameters = [parameter for command in commands for parameter in command.params]
    options = {spelling for one in parameters for spelling in (*one.opts, *one.secondary_opts)}
    names, arguments = public()
    extras = tomllib.loads((SOURCES.parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    kinds = {
        r"(?<![\w-])--[a-z][a-z-]+": options,
        r"[`(]sadrec ([a-z]+)": COMMANDS,
        r"(?<!['\w])([A-Za-z_]\w{2,})\(": names | FOREIGN,
        r"(?<![\w-])([a-z_]{3,})=(?!=)": arguments | set(opened(SAD)) | FOREIGN_ARGUMENTS,
        r"sadrec\[(\w+)\]": extras,
    }
    named = [(place, name, expected) for place, text in messages() for kind, expected in kinds.items()
             for name in re.findall(kind, text)]  # fmt: skip
    assert [f"{place}: {name}" for place, name, expected in named if name not in expected] == []
    assert len(named) > 150


FRAME = pl.DataFrame({"Who": [1, 1, 2, 2, 3], "sku": [1, 2, 2, 3, 4], "stars": [5.0, 1.0, 4.0, 2.0, 3.0]})
RATINGS = Interactions.from_frame(FRAME, user="Who", item="sku", rating="stars")
PAIRS = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "d"), ("b", "d"), ("c", "d")] * 5
VOTES = pl.DataFrame({"won": ["a", "b", "a"], "lost": ["b", "c", "c"]})
SMALL = {"factors": 2, "iterations": 2}


@pytest.fixture(scope="module")
def lists():
    rng = np.random.default_rng(0)
    return SAD(**SMALL).fit(rng.random((20, 12)) < 0.3, show_progress=False)


@pytest.fixture(scope="module")
def games():
    return SAD().fit(PAIRS, show_progress=False)


ANEW = {"show_progress": False}
IN_PYTHON = {
    "columns of a frame": (
        lambda *_: SAD().fit(FRAME), r"Interactions\.from_frame\(frame, user=COLUMN, item=COLUMN\)",
        lambda *_: SAD(**SMALL).fit(Interactions.from_frame(FRAME, user="Who", item="sku"), **ANEW)),
    "columns of votes": (
        lambda *_: Comparisons.from_frame(VOTES), r"Comparisons\.from_frame\(frame, winner=COLUMN, loser=COLUMN\)",
        lambda *_: SAD().fit(Comparisons.from_frame(VOTES, winner="won", loser="lost"), **ANEW)),
    "a pivot table": (
        lambda *_: SAD().fit(pd.DataFrame(np.eye(12))), r"from_csr\(matrix, users, items\)",
        lambda *_: Interactions.from_csr(pd.DataFrame(np.eye(12)), range(12), range(12))),
    "a list of users with items": (
        lambda *_: SAD().fit([(1, "a", 3.0)]), r"polars\.DataFrame\(pairs, schema=\['user', 'item'\], orient='row'\)",
        lambda *_: Interactions.from_frame(pl.DataFrame([(1, "a"), (2, "b")], schema=["user", "item"], orient="row"))),
    "a negative rating": (
        lambda *_: Interactions.from_csr(np.array([[1.0, -1.0]])), "allow_negative=True",
        lambda *_: Interactions.from_csr(np.array([[1.0, -1.0]]), allow_negative=True)),
    "no rating": (
        lambda *_: Interactions.from_frame(pl.DataFrame({"user": [1], "item": [2], "rating": [None]})), "rating=None",
        lambda *_: Interactions.from_frame(pl.DataFrame({"user": [1], "item": [2], "rating": [None]}), rating=None)),
    "a matrix of wins": (
        lambda *_: SAD().fit(np.array([[0, 3, 1], [1, 0, 3], [3, 1, 0]])), r"fit\(Comparisons\.from_wins\(matrix\)\)",
        lambda *_: SAD().fit(Comparisons.from_wins(np.array([[0, 3, 1], [1, 0, 3], [3, 1, 0]])), **ANEW)),
    "no times": (
        lambda *_: RATINGS.split_by_time(), "use split or leave_one_out",
        lambda *_: (RATINGS.split(test=0.4), RATINGS.leave_one_out())),
    "a mapping of titles": (
        lambda *_: Items(pl.DataFrame({"item": [1], "title": ["x"]})), r"Items\.from_frame",
        lambda *_: Items.from_frame(pl.DataFrame({"item": [1], "title": ["x"]}))),
    "a large tensor": (
        lambda *_: simulate("sim2", n=3000, m=3000, k=2, comparisons_per_user=1).X, r"use margins\(user\)",
        lambda *_: simulate("sim2", n=3, m=30, k=2, comparisons_per_user=1).margins(0)),
    "not fitted": (
        lambda *_: SAD().recommend(1), "call fit first", lambda *_: SAD(**SMALL).fit(RATINGS, **ANEW).recommend(1)),
    "a misspelt setting": (lambda *_: SAD(factor=3), "did you mean 'factors'", lambda *_: SAD(factors=3)),
    "settings without names": (lambda *_: SAD(*range(1, 40)), "factors=64", lambda *_: SAD(factors=64)),
    "N in the place of user_items": (
        lambda lists, _: lists.recommend(3, 10), r"did you mean N=10\?", lambda lists, _: lists.recommend(3, N=10)),
    "no likes": (
        lambda lists, _: lists.recommend_for([]), r"recommend\(None\)", lambda lists, _: lists.recommend(None)),
    "an id as text": (
        lambda _, games: games.probability(None, "A", "b"), "did you mean 'a'",
        lambda _, games: games.probability(None, "a", "b")),
    "uncertainty of lists": (
        lambda lists, _: lists.deviation(1, 2, 3), r"ask about a model\.visitor\(\.\.\.\)",
        lambda lists, _: lists.visitor([1, 2]).deviation("visitor", 2, 3)),
    "uncertainty of games": (
        lambda *_: SAD(solver="sgd", **SMALL).fit(PAIRS, **ANEW).ask_next(), "solver='variational'",
        lambda *_: SAD(solver="variational").fit(PAIRS, **ANEW).ask_next()),
    "both kinds of a visitor": (
        lambda lists, _: lists.recommend_for([1], comparisons=Comparisons.from_pairs([(1, 2)])), "not both",
        lambda lists, _: lists.recommend_for(comparisons=Comparisons.from_pairs([(1, 2)]))),
    "comparisons as likes": (
        lambda lists, _: lists.recommend_for(Comparisons.from_pairs([(1, 2)])), r"give Comparisons as comparisons=",
        lambda lists, _: lists.recommend_for(comparisons=Comparisons.from_pairs([(1, 2)]))),
    "factors in rows": (
        lambda *_: SAD.from_factors(np.ones((2, 5)), np.ones((2, 7)), np.ones((2, 7))), "transpose",
        lambda *_: SAD.from_factors(np.ones((5, 2)), np.ones((7, 2)), np.ones((7, 2)))),
    "rivals of BPR": (
        lambda *_: BPR.from_factors(np.ones((5, 2)), np.ones((7, 2)), np.ones((7, 2))), r"use SAD\.from_factors",
        lambda *_: SAD.from_factors(np.ones((5, 2)), np.ones((7, 2)), np.ones((7, 2)))),
    "the paths of two files": (
        lambda lists, _: evaluate_top_n(lists, "a.csv", "b.csv"), r"Interactions\.from_frame\(frame\)",
        lambda *_: evaluate_top_n(Popularity().fit(RATINGS.split(test=0.4)[0]), *RATINGS.split(test=0.4))),
    "what was trained on": (
        lambda *_: evaluate(SAD(**SMALL).fit(RATINGS, **ANEW), *RATINGS.leave_one_out()),
        "fit it on the training part alone",
        lambda *_: evaluate(Popularity().fit(RATINGS.leave_one_out()[0]), *RATINGS.leave_one_out())),
    "models without names": (
        lambda *_: compare([Popularity()], RATINGS), r"\{'name': model\}",
        lambda *_: compare({"name": Popularity()}, RATINGS, splits=1, show_progress=False)),
    "a class for a model": (
        lambda *_: tune(SAD, RATINGS), r"SAD\(\.\.\.\)",
        lambda *_: tune(SAD(**SMALL), RATINGS, sampler="grid", space={"bias": [True]}, **ANEW)),
    "a measure of the wrong kind": (
        lambda *_: tune(SAD(), Comparisons.from_pairs(PAIRS), metric="m1"), "choose one of .*log_loss",
        lambda *_: tune(SAD(), Comparisons.from_pairs(PAIRS), metric="log_loss", sampler="grid",
                        space={"factors": [1]}, **ANEW)),
    "a reference for wins": (
        lambda lists, _: lists.rank(1, method="wins", reference=[2]), "leave it out",
        lambda lists, _: lists.rank(1, method="wins")),
    "two parts of two kinds": (
        lambda _, games: evaluate(games, RATINGS, Comparisons.from_pairs(PAIRS)), "give the two parts of one split",
        lambda _, games: evaluate_comparisons(games, Comparisons.from_pairs(PAIRS))),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::sadrec.data.DataWarning")
@pytest.mark.parametrize("what", IN_PYTHON)
def test_a_remedy_in_python_works(what, lists, games):
    fails, words, remedy = IN_PYTHON[what]
    with pytest.raises((ValueError, TypeError, AttributeError), match=words):
        fails(lists, games)
    remedy(lists, games)


TABLES = {
    "odd.csv": "Who,sku,stars\n"
    + "".join(f"{u},{i},{(u + i) % 5 + 1}\n" for u in range(9) for i in range(u % 3, 9, 2)),
    "games.csv": "winner,loser\n" + "".join(f"{a},{b}\n" for a, b in PAIRS),
    "votes.csv": "who,winner,loser\n1,a,b\n2,b,c\n",
    "bare.csv": "ann,tea\nbob,ale\nann,gin\n",
    "minus.csv": "user,item,rating\n1,2,-1\n1,3,4\n",
    "train.csv": "user,item\n" + "".join(f"{u},{i}\n" for u in range(9) for i in range(u % 3, 9, 2)),
    "test.csv": "user,item\n" + "".join(f"{u},{(u % 3 + 1) % 9}\n" for u in range(9)),
    "notes.sad": "my notes",
    "films.csv": "item,title\n" + "".join(f"{i},Film {i}\n" for i in range(9)),
}
FIT = ("--factors", "2", "--iterations", "1", "--quiet")
AS_COMMANDS = {
    "columns": (("describe", "odd.csv"), "--user COLUMN --item COLUMN", ("--user", "Who", "--item", "sku")),
    "a column in another spelling": (
        ("describe", "odd.csv", "--item", "sku", "--user", "who"), "did you mean 'Who'?", ("--user", "Who")),
    "no judge": (("describe", "votes.csv"), "(--user none)", ("--user", "none")),
    "no header": (("describe", "bare.csv"), "(--no-header)", ("--no-header",)),
    "a negative rating": (("describe", "minus.csv"), "(--allow-negative)", ("--allow-negative",)),
    "a file of mine": (("fit", "train.csv", *FIT, "-o", "notes.sad"), "replace it with --overwrite", ("--overwrite",)),
    "no training file": (("evaluate", "m.sad", "--test", "test.csv"), "give --train FILE", ("--train", "train.csv")),
    "all without a file": (("recommend", "m.sad", "--all"), "-o FILE or FOLDER", ("-o", "all.csv")),
    "all as text": (("recommend", "m.sad", "--all", "-o", "all.txt"), "all.parquet", ("-o", "all.parquet")),
    "a title without titles": (("similar", "m.sad", "--item", "Film 3"), "--titles TABLE", ("--titles", "films.csv")),
    "a grid of nothing": (
        ("tune", "games.csv", "-o", "best.json", "--sampler", "grid"), "--try factors=16,32", ("--try", "factors=1,2")),
    "a misspelt option": (("describe", "train.csv", "--kin", "interactions"), "--kind", None),
}  # fmt: skip


@pytest.mark.parametrize("what", AS_COMMANDS)
def test_a_remedy_on_the_command_line_works(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in TABLES.items():
        Path(name).write_text(content)
    run = CliRunner().invoke
    assert run(main, ["fit", "train.csv", "-o", "m.sad", *FIT]).exit_code == 0
    words, remedy, options = AS_COMMANDS[what]
    answer = run(main, list(words))
    assert answer.exit_code and remedy in answer.output
    if options is not None:
        answer = run(main, [*words, *options])
        assert answer.exit_code == 0, answer.output


def test_the_sampler_is_where_the_first_page_says():
    assert sadrec.posterior.GibbsSAD is GibbsSAD
