"""Runs a function of ``scenes.py`` in a new process, in a namespace with a cluster of Ray."""

import importlib
import json
import sys
import tempfile
from pathlib import Path

import pytest

from campaigns import _namespace


def inside(function, nodes, *arguments, seconds=1200):
    """Run ``module:function`` with a cluster of so many nodes, and return what it returns, by way of JSON."""
    if reason := _namespace.reason_against():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, __file__, function, str(nodes), json.dumps(arguments), str(answer)]
        done = _namespace.run(*command, capture_output=True, timeout=seconds, cwd=folder)
        assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
        return json.loads(answer.read_text())


if __name__ == "__main__":
    name, nodes, arguments, answer = sys.argv[1:]
    sys.path.insert(0, str(Path(__file__).parent))
    module, function = name.split(":")
    made = _namespace.start(int(nodes))
    result = getattr(importlib.import_module(module), function)(made, *json.loads(arguments))
    Path(answer).write_text(json.dumps(result))
    _namespace.end(made)
