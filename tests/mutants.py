"""Change single lines of the package and count how many changes a test notices: ``python tests/mutants.py``.

A mutant lacks a statement, compares or adds the other way round, or has another number. Each is made in a copy of the
sources, and the tests of that part run until one fails. A mutant that no test notices is printed: write the test, or
add it to ``SAME`` with the reason why no answer changes.
"""

import argparse
import ast
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sadrec"
# each run starts as a copy of a process that has loaded what takes long to load, and is none of ours
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["numba", "polars", "pandas", "scipy.stats", "scipy.optimize", "scipy.sparse.csgraph"])
TRAINING = [
    "tests/training/sgd/test_pairwise.py",
    "tests/training/sgd/test_trainer.py",
    "tests/training/sgd/test_negatives.py",
]
# which files are changed, and which tests have to notice; the test file of the same name runs first
PARTS = {
    "training/sgd/pairwise.py": TRAINING,
    "training/sgd/negatives.py": TRAINING,
    "training/sgd/softmax.py": ["tests/training/sgd/test_softmax.py"],
    "training/sgd/samplers.py": ["tests/training/sgd/test_samplers.py"],
    "ranking/_strengths.py": ["tests/ranking/test_leaderboard.py"],
    "ranking/*.py": ["-k not intervals_hold_the_truth", "tests/ranking"],  # a minute of statistics
    "data/_assemble.py": ["tests/data/test_interactions.py", "tests/data/test_hostile_tables.py"],
    "data/_comparison_rows.py": ["tests/data/test_comparisons.py"],
    "data/ids.py": ["tests/data/test_ids.py", "tests/data/test_interactions.py"],
    "_core/sparse.py": ["tests/test_sparse.py", "tests/data/test_interactions.py", "tests/models/test_fit.py"],
    "_core/check.py": ["tests/test_check.py"],
}
OTHER = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not",
    ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in", ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*",
}  # fmt: skip
# Constants that say how much is done at a time, from which size on another way is faster, how many points or draws an
# average is made of, or after how many steps a search that is stuck gives up: one more is as good.
SIZES = {
    "_ANEW", "_DRAWS", "_GRAM", "_MANY", "_NODES", "_SPARE", "_STAGED", "_TURNS",
    "_BLOCK", "_CACHED", "_CHUNK", "_COLUMNS", "_FETCHED", "_MOST", "_NUMBERS", "_PIECES", "_POLISHING", "_ROWS",
    "_SMALL", "_STEPS", "_STRIDE", "_SWEEPS", "_UNITS", "AHEAD", "BATCH", "CHUNK",
}  # fmt: skip
# Constants that say how exact something has to be: a figure that is exactly at the bound may count or not.
BOUNDS = {"MOST_ITEMS", "_FINE", "_FLAT", "_GAP", "_LARGEST", "_NEAR", "_NEARLY", "_ROUGHLY", "_ROUNDING", "PROBABLE"}
# Keywords that say what is copied, what is shown of a record, and that a mistake in the code would be noticed.
KEYWORDS = {("astype", "copy"), ("csr_matrix", "copy"), ("resize", "refcheck"), ("field", "repr"), ("zip", "strict")}
# Calls whose arguments name a stream of random numbers: any other is as good.
STREAMS = {"default_rng", "stream_key"}
# Mutants, by file and changed line, that change no answer, and why.
SAME = {
    ("ranking/cycles.py", "levels = np.unique(margins[margins >= 0])"): "the search always leaves level 0 behind",
    ("ranking/cycles.py", "beating = i + 1 + np.flatnonzero(margins[i + 1 :, i] >= least)"): "sorted out below",
    ("ranking/cycles.py", "beaten = i + 1 + np.flatnonzero(margins[i, i + 1 :] >= least)"): "sorted out below",
    (
        "data/_assemble.py",
        "whole = ratings.astype(np.int8) if (np.abs(ratings) < 100).all() else ratings",
    ): "packed or not",
    (
        "data/_assemble.py",
        "whole = ratings.astype(np.int8) if (np.abs(ratings) <= (100 + 1)).all() else ratings",
    ): "an int8 holds these too",
    ("training/sgd/negatives.py", "soon, later = shard_users[s + 4], shard_users[s - 8]"): "says what is fetched",
    ("training/sgd/negatives.py", "soon, later = shard_users[s - 4], shard_users[s + 8]"): "says what is fetched",
    ("training/sgd/negatives.py", "coming = t - AHEAD"): "says what is fetched",
    ("training/sgd/negatives.py", "if x <= least:"): "of two with one margin, either is the hardest",
    ("ranking/rank.py", "theta = (1.0 + 1) + float((x @ p).max())"): "the path starts farther from its end",
    ("ranking/rank.py", "aims = [0.0] * _STEPS + [(1.0 + 1)] * 2"): "the last steps move by nothing that counts",
    ("ranking/rank.py", "aims = [0.0] * _STEPS + [1.0] * (2 + 1)"): "one more step that moves by nothing that counts",
    (
        "ranking/belief.py",
        "xi = moments.user[0] - _normal(rng, self.user_covariance[[user]])[:, 0]",
    ): "the noise is symmetric",
    (
        "ranking/belief.py",
        "item = moments.item[involved] - _normal(rng, self.item_covariance[involved])",
    ): "the noise is symmetric",
    (
        "_core/sparse.py",
        "narrow = np.int32 if max(result.nnz, *result.shape) < _INT32_MAX else np.int64",
    ): "the largest number fits into either",
    ("ranking/_selection.py", "pass  # to_beat = kept[0]"): "the last of the spare places is lost",
    (
        "ranking/belief.py",
        "return np.asarray(x + mean + own_part - np.sqrt(variance) * rng.standard_normal(x.shape))",
    ): "the noise is symmetric",
    ("ranking/top_n.py", "cosines = np.clip(cosines, -(1.0 + 1), 1.0)"): "one rounding below -1 at most",
    (
        "training/sgd/negatives.py",
        "longest_row = int(np.diff(start).max(initial=(0 + 1)))",
    ): "a type that is wide enough",
    ("ranking/report.py", "pass  # margins = (margins - margins.T) / 2"): "rounding alone",
    ("ranking/logistic.py", "for steps in range((1 + 1), _POLISHING):"): "another way takes over a step earlier",
    (
        "ranking/top_n.py",
        "pass  # raise ValueError(f\"method must be one of {', '.join(map(repr, METHODS))}, not {method!r}\")",
    ): "rank refuses it later",
    ("ranking/top_n.py", "pass  # kept = min(kept, self.items)"): "places beyond the catalogue stay empty",
    ("ranking/cycles.py", "if np.count_nonzero(margins == 0) >= size:"): "both ways count the same",
    ("ranking/top_n.py", "return np.arange(self.items), np.zeros((2 + 1), np.int64)"): "a row that no search reads",
    ("ranking/visitors.py", "balance: tuple[float, int, float] = (0.0, (0 + 1), 0.0)"): "a power of 0 needs no total",
    ("ranking/visitors.py", "balance: tuple[float, int, float] = ((0.0 + 1), 0, 0.0)"): "alone, all weigh alike",
    ("ranking/logistic.py", "if length <= 1e-8:"): "halves of 1 never are exactly that",
    ("ranking/pairs.py", "step = max((1 + 1), _CHUNK // (parameters.n_factors + 1))"): "what is done at a time",
    (
        "ranking/top_n.py",
        "return float(unit * (0.5 + (self.factors + 2) * 256) * np.abs(query).sum(dtype=np.float64))",
    ): "a looser bound looks at more items, and finds the same",
    ("ranking/results.py", "none = np.zeros(len(ties[(0 + 1)]), np.float32)"): "columns of one length",
    (
        "data/_comparison_rows.py",
        '_SCORES = {"1": (1 + 1), "1.0": 1, "0.5": 0, "0": -1, "0.0": -1}',
    ): "only the sign is looked at",
    (
        "data/_comparison_rows.py",
        '_SCORES = {"1": 1, "1.0": (1 + 1), "0.5": 0, "0": -1, "0.0": -1}',
    ): "only the sign is looked at",
    (
        "data/_assemble.py",
        "if int(stamps.max(initial=first)) - int(first) >= _INT64_MAX:",
    ): "packed or not, the times are the same",
}


class Mutants(ast.NodeVisitor):
    """All mutants of a source, each as (line, what was there, what is there now, the whole new source)."""

    def __init__(self, source: str) -> None:
        self.lines, self.found = source.splitlines(keepends=True), []
        self.visit(ast.parse(source))

    def visit(self, node: ast.AST) -> None:
        if not only_fetches(node):
            super().visit(node)

    def replace(self, line: int, start: int, stop: int, new: str) -> None:
        """Note a mutant, of which columns of a line are replaced."""
        old = self.lines[line - 1].encode()
        changed = old[:start] + new.encode() + old[stop:]
        whole = [*self.lines[: line - 1], changed.decode(), *self.lines[line:]]
        self.found.append((line, old.decode().strip(), changed.decode().strip(), "".join(whole)))

    def between(self, left: ast.expr, right: ast.expr, operator: ast.AST) -> None:
        """Replace the operator between two expressions of one line."""
        if type(operator) in OTHER and left.end_lineno == right.lineno:
            text = self.lines[right.lineno - 1].encode()[left.end_col_offset : right.col_offset].decode()
            core = text.strip(" ()")
            if core:
                new = text.replace(core, OTHER[type(operator)])
                self.replace(right.lineno, left.end_col_offset, right.col_offset, new)

    def visit_Compare(self, node: ast.Compare) -> None:
        named = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            if not (named & (SIZES | BOUNDS) and isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE)):
                self.between(left, right, operator)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in STREAMS:
            return
        for part in (node.func, *node.args, *(k.value for k in node.keywords if (name, k.arg) not in KEYWORDS)):
            self.visit(part)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.between(node.left, node.right, node.op)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.replace(node.lineno, node.col_offset, node.end_col_offset, str(not node.value))
        elif isinstance(node.value, int | float):
            self.replace(node.lineno, node.col_offset, node.end_col_offset, f"({node.value!r} + 1)")

    def visit_Assign(self, node: ast.Assign) -> None:
        self.remove(node)
        target, value = node.targets[0], node.value
        tuples = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
        for one, given in zip(target.elts, value.elts, strict=True) if tuples else [(target, value)]:
            if getattr(one, "id", "") not in SIZES:
                self.visit(one)
                self.visit(given)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.remove(node)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):  # and no docstring
            self.remove(node)
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.remove(node)  # the numbers in its text are nobody's concern

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for statement in (*node.args.defaults, *node.body):  # neither decorators nor annotations
            self.visit(statement)

    def remove(self, node: ast.stmt) -> None:
        if node.lineno == node.end_lineno and node.col_offset:  # what a module needs is noticed by its import
            self.replace(node.lineno, node.col_offset, node.end_col_offset, f"pass  # {ast.unparse(node)}")


def only_fetches(node: ast.AST) -> bool:
    """Whether a statement only has the processor fetch what is needed soon, which changes no answer."""
    if isinstance(node, ast.If | ast.For):
        return all(map(only_fetches, [*node.body, *node.orelse]))
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("fetch", "prefetch")


def mutants() -> Iterator[tuple[Path, list[str], tuple[int, str, str, str]]]:
    """Yield every mutant with its file and the tests to run."""
    done = {PACKAGE / "ranking" / "plots.py"}  # drawings are looked at
    for pattern, tests in PARTS.items():
        for path in sorted(set(PACKAGE.glob(pattern)) - done):
            done.add(path)
            own = Path("tests") / path.relative_to(PACKAGE).with_name(f"test_{path.stem.lstrip('_')}.py")
            first = [own.as_posix()] if (ROOT / own).is_file() else []
            for mutant in Mutants(path.read_text(encoding="utf-8")).found:
                if (path.relative_to(PACKAGE).as_posix(), mutant[2]) not in SAME:
                    yield path, [*dict.fromkeys([*first, *tests])], mutant


def outcome(path: Path, tests: list[str], source: str | None, seconds: float) -> int:
    """Return 0 where no test fails when a file has this source (None: its own), -9 where they do not end."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(PACKAGE, Path(folder) / "sadrec", ignore=shutil.ignore_patterns("__pycache__"))
        if source is not None:
            changed = Path(folder) / "sadrec" / path.relative_to(PACKAGE)
            changed.write_text(source, encoding="utf-8")
            tests = [str(changed), *tests]  # the examples of its docstrings first
        run = FORKS.Process(target=run_tests, args=(folder, tests))
        run.start()
        run.join(seconds)
        run.kill()
        run.join()
        return run.exitcode


def run_tests(folder: str, tests: list[str]) -> None:
    """Run tests in this process with the package that is in a folder, until one fails."""
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, str(ROOT)])
    sys.path[:0] = [folder, str(ROOT)]
    place = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
    sys.exit(pytest.main([*place, "-x", "-q", "-p", "no:cacheprovider", "-m", "not extra", *tests]))


def main() -> None:
    """Try some mutants, drawn at random, and print those that no test noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="mutants to try")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a part of the file's path")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=300, help="a run that takes longer counts as caught")
    options = parser.parse_args()
    every = [mutant for mutant in mutants() if options.only in str(mutant[0].relative_to(PACKAGE))]
    chosen = random.Random(options.seed).sample(every, min(options.count, len(every)))
    if outcome(PACKAGE / "__init__.py", sorted({test for mutant in chosen for test in mutant[1]}), None, 3600):
        sys.exit("a test fails, or does not end, without any mutant: repair it first")

    def tried(mutant: tuple[Path, list[str], tuple[int, str, str, str]]) -> bool:
        path, tests, (line, old, new, source) = mutant
        code = outcome(path, tests, source, options.seconds)
        if code in (0, -9):
            print(
                f"{'ended late' if code else 'unnoticed'}: {path.relative_to(ROOT)}:{line}: {old}  ->  {new}",
                flush=True,
            )
        return code != 0

    with ThreadPoolExecutor(options.jobs) as pool:
        noticed = sum(pool.map(tried, chosen))
    print(f"{noticed} of {len(chosen)} mutants caught, of {len(every)} possible ones (seed {options.seed})")


if __name__ == "__main__":
    main()
