"""How large the package is, how far a call walks through it, and whether fits still give the same bits.

    python benchmarks/house.py                      # everything, ten seconds once kernels are compiled
    python benchmarks/house.py --only lines names   # without fitting anything
    python benchmarks/house.py --save before.json   # and, after a change: --against before.json

Lines of code are those of ``src/sadrec`` without docstrings, comments and blanks. Files and functions are those of the
package that a call enters while the profiler of Python watches all threads; kernels are compiled beforehand and not
counted. A type name counts twice when two modules define it, as a class or as an alias.
"""

import argparse
import ast
import asyncio
import contextlib
import hashlib
import io
import json
import re
import sys
import tempfile
import threading
import tokenize
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))  # the sources beside this file, not those installed
import sadrec
from sadrec import BPR, SAD, Comparisons, Interactions

PACKAGE = Path(sadrec.__file__).parent
GUESTS = ("cluster", "serving", "integrations", "cli")
SECTIONS = ("lines", "names", "walks", "fits")


# -- what is written --------------------------------------------------------------------------------------------------


def lines_of_code(source):
    """Return how many lines of a source hold code: no docstrings, comments or blanks."""
    documented = set()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        # a string that stands alone is documentation: of what holds it, or of the constant above it
        for entry in body if isinstance(body, list) else []:
            if (
                isinstance(entry, ast.Expr)
                and isinstance(entry.value, ast.Constant)
                and isinstance(entry.value.value, str)
            ):
                documented.update(range(entry.lineno, entry.end_lineno + 1))
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    held = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in silent:
            held.update(range(token.start[0], token.end[0] + 1))
    return len(held - documented)


def sources():
    """Yield (module path below the package, source) of every file."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE), path.read_text()


def lines():
    """Return lines of code by folder, and in total."""
    counts = Counter()
    for path, source in sources():
        counts[path.parts[0] if len(path.parts) > 1 else "(top)"] += lines_of_code(source)
    total = sum(counts.values())
    return {**counts, "total": total, "without guests": total - sum(counts[name] for name in GUESTS)}


def type_names(tree):
    """Yield the classes of a module and its aliases of types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
            is_type = isinstance(value, ast.Subscript | ast.BinOp | ast.Name | ast.Attribute)
            named = isinstance(value, ast.Call) and ast.unparse(value.func) in ("TypeVar", "NewType", "namedtuple")
            if re.fullmatch(r"_?[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*", name) and (is_type or named):
                yield name


def names():
    """Return the type names that more than one module defines, and where."""
    where = defaultdict(list)
    for path, source in sources():
        for name in sorted(set(type_names(ast.parse(source)))):
            where[name].append(str(path))
    return {name: files for name, files in sorted(where.items()) if len(files) > 1}


# -- what is walked ---------------------------------------------------------------------------------------------------


def walk(call):
    """Return how many files and functions of the package a call enters, in all threads."""
    seen = set()

    def enter(frame, event, _):
        if event == "call":
            seen.add(frame.f_code)

    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    # lambdas and comprehensions have no name; which of them are entered depends on the version of Python
    own = [code for code in seen if Path(code.co_filename).is_relative_to(PACKAGE) and code.co_name[0] != "<"]
    return {"files": len({code.co_filename for code in own}), "functions": len(own)}


def interactions():
    """Return ratings of 60 users for 40 items, some with 3 stars and some with 5."""
    rng = np.random.default_rng(0)
    stars = rng.choice([0, 3, 5], size=(60, 40), p=[0.7, 0.1, 0.2]).astype(np.float32)
    return Interactions.from_csr(sp.csr_matrix(stars))


def comparisons(users, count=600, items=12):
    """Return answers of users about items, better known from a cycle than from a score."""
    rng = np.random.default_rng(users)
    user = rng.integers(users, size=count)
    first = rng.integers(items, size=count)
    second = (first + rng.integers(1, items, size=count)) % items
    before = rng.random(count) < np.where((second - first) % 3 == 1, 0.8, 0.5)
    winner, loser = np.where(before, first, second), np.where(before, second, first)
    return Comparisons.from_indices(user, winner, loser, users=np.arange(users), items=np.arange(items))


def command(path):
    """Run ``sadrec fit FILE``."""
    from sadrec.cli import main

    main(["fit", str(path), "-o", str(path.with_suffix(".sad")), "--quiet"], standalone_mode=False)


def asked_of_a_service(model, path):
    """Return a function that asks a service of a model for a list, as its server does."""
    from sadrec.serving import ServeSettings, create_app
    from sadrec.serving.reload import load_warm

    model.save(path)
    settings = ServeSettings(str(path))
    service = create_app(settings, load_warm(settings))
    scope = {"type": "http", "method": "GET", "path": "/v1/recommend", "query_string": b"user=7&N=10", "headers": []}
    statuses = []

    async def send(message):
        statuses.append(message.get("status", 200))

    def ask():
        asyncio.run(service({**scope, "http_version": "1.1", "scheme": "http", "root_path": ""}, None, send))
        assert set(statuses) == {200}

    return ask


def walks():
    """Return files and functions that common calls pass."""
    data, answers = interactions(), comparisons(8)
    models = [SAD().fit(data, show_progress=False) for _ in range(2)]  # the first question prepares an index
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.csv"
        rows = data.matrix.tocoo()
        table = zip(rows.row.tolist(), rows.col.tolist(), rows.data.tolist(), strict=True)
        path.write_text("user,item,rating\n" + "".join(f"u{u},i{i},{r}\n" for u, i, r in table))
        calls = {
            "sadrec fit FILE": lambda: command(path),
            "SAD().fit(interactions)": lambda: SAD().fit(data, show_progress=False),
            "SAD().fit(comparisons)": lambda: SAD().fit(answers, show_progress=False),
            "recommend": lambda: models.pop().recommend(data.users[0]),
            "GET /v1/recommend": asked_of_a_service(models[0], path.with_name("served.sad")),
        }
        walked = {}
        for name, call in calls.items():
            with contextlib.redirect_stdout(io.StringIO()):
                call()  # compiles the kernels, imports what is imported late
                walked[name] = walk(call)
    return walked


# -- the same bits ----------------------------------------------------------------------------------------------------


def checksum(model):
    """Return a digest of what a model has learnt."""
    digest = hashlib.sha256()
    for name in ("user_factors", "item_factors", "rival_factors", "item_bias"):
        array = getattr(model, name)
        digest.update(name.encode())
        if array is not None:
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def fits():
    """Return the checksums of ten fits of different kinds."""
    data, one, several = interactions(), comparisons(1), comparisons(8)
    rng = np.random.default_rng(3)
    described = {int(item): {"length": float(rng.normal()), "kind": "ab"[item % 2]} for item in data.items}
    short = {"factors": 6, "iterations": 8}
    quiet = {"show_progress": False}
    held_out = interactions().split(test=0.2, seed=1)
    made = {
        "pairwise": lambda: SAD(loss="pairwise", **short).fit(data, **quiet),
        "softmax": lambda: SAD(loss="softmax", advanced={"negatives": 8}, **short).fit(data, **quiet),
        "hard negatives": lambda: SAD(loss="pairwise", negative_candidates=4, **short).fit(data, **quiet),
        "adaptive": lambda: SAD(loss="pairwise", advanced={"adaptive": True}, factors=6, iterations=16).fit(
            data, **quiet
        ),
        "order": lambda: SAD(loss="pairwise", order_share=0.5, **short).fit(data, **quiet),
        "comparisons, one user": lambda: SAD().fit(one, **quiet),
        "comparisons, several users": lambda: SAD().fit(several, **quiet),
        "comparisons, sgd": lambda: SAD(solver="sgd", **short).fit(several, **quiet),
        "features": lambda: SAD(loss="pairwise", **short).fit(data, item_features=described, **quiet),
        "BPR": lambda: BPR(**short).fit(data, **quiet),
        "validation": lambda: SAD(loss="pairwise", factors=6, iterations=30, learning_rate=0.2).fit(
            held_out[0], validation=held_out[1], **quiet
        ),
    }
    return {name: checksum(make()) for name, make in made.items()}


# -- the report -------------------------------------------------------------------------------------------------------


def show(figures, before):
    """Print the figures, beside those of a file where one is given."""
    for section, values in figures.items():
        old = before.get(section, {})
        print(f"\n{section}")
        if section == "names":
            print(f"  {len(values)} type names in more than one module" + (f" (before: {len(old)})" if old else ""))
            for name, files in values.items():
                print(f"  {name:24} {' '.join(files)}")
            continue
        for name in dict.fromkeys([*values, *old]):
            value, past = values.get(name, 0), old.get(name)
            text = (
                f"{value['files']} files, {value['functions']} functions" if isinstance(value, dict) else f"{value:>6}"
            )
            if section == "fits" and past is not None:
                text += "  the same" if past == value else f"  was {past}"
            elif past is not None and past != value:
                text += "  was " + (f"{past['files']}, {past['functions']}" if isinstance(past, dict) else f"{past}")
            print(f"  {name:28} {text}")


def main():
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, help="these sections alone")
    parser.add_argument("--save", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--against", type=Path, help="compare with the figures of this JSON file")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    figures = {name: globals()[name]() for name in arguments.only}
    if arguments.save:
        arguments.save.write_text(json.dumps(figures, indent=1))
    show(figures, json.loads(arguments.against.read_text()) if arguments.against else {})


if __name__ == "__main__":
    main()
