"""A real cluster of Ray in a network namespace of its own, in which there is nothing but loopback.

A test gives a function of this folder to :func:`inside`; it runs in a new process, in the namespace, with ``nodes``
raylets, and what it returns comes back as JSON. Where the system allows no namespace, the test is skipped.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ALONE = ["unshare", "-n", "-p", "-f", "--mount-proc", "--kill-child"]  # no process outlives the first
STORE = 80 * 2**20  # bytes of object store for each node: the least that Ray takes
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "4",
    "RAY_object_store_minimum_memory_bytes": str(STORE),
    "RAY_worker_niceness": "0",
}


def reason_to_skip():
    """Return why there can be no cluster in a namespace here, or None."""
    if importlib.util.find_spec("ray") is None:
        return "Ray is not installed"
    tried = subprocess.run([*ALONE, "ip", "link", "set", "lo", "up"], capture_output=True, check=False)
    return None if tried.returncode == 0 else "this system allows no network namespace (unshare -n, as root)"


def inside(function, nodes, *arguments, seconds=400):
    """Run ``module:function`` with a cluster of so many nodes, and return what it returns."""
    if reason := _reason():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        here = [sys.executable, __file__, function, str(nodes), json.dumps(arguments), str(answer)]
        command = [*ALONE, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *here]
        paths = [str(Path(__file__).parents[2]), *sys.path]
        environment = {
            **os.environ,
            **ENVIRONMENT,
            "RAY_TMPDIR": folder,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=seconds, cwd=folder, check=False
        )
        assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
        return json.loads(answer.read_text())


_KNOWN = []


def _reason():
    if not _KNOWN:
        _KNOWN.append(reason_to_skip())
    return _KNOWN[0]


def cluster(nodes, cpus=1):
    """Start nodes and connect to them."""
    import ray
    from ray.cluster_utils import Cluster

    node = {"num_cpus": cpus, "object_store_memory": STORE, "node_ip_address": "127.0.0.1"}
    made = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    for _ in range(nodes - 1):
        made.add_node(**node)
    made.wait_for_nodes()
    ray.init(address=made.address, _node_ip_address="127.0.0.1", log_to_driver=False, logging_level="ERROR")
    return made


if __name__ == "__main__":
    name, nodes, arguments, answer = sys.argv[1:]
    sys.path.insert(0, str(Path(__file__).parent))
    module, function = name.split(":")
    made = cluster(int(nodes))
    result = getattr(importlib.import_module(module), function)(made, *json.loads(arguments))
    Path(answer).write_text(json.dumps(result))
    import ray

    ray.shutdown()
    made.shutdown()
