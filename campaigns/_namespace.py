"""A real cluster of Ray on this machine, in a network namespace of its own that has nothing but loopback.

Tests, the demonstration, the campaign and the benchmark of the cluster run in it: nothing they start is reached from
outside, and no process outlives the first.
"""

import importlib.util
import logging
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

ALONE = ["unshare", "-n", "-p", "-f", "--mount-proc", "--kill-child"]
LEAST_STORE = 80 * 2**20  # bytes of object store for each node: the least that Ray takes
_STARTS = 4  # of the first node
_INSIDE = "SADREC_INSIDE_NAMESPACE"
_ENVIRONMENT = {
    _INSIDE: "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "4",
    "RAY_object_store_minimum_memory_bytes": str(LEAST_STORE),
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # what Ray says of nodes that were killed here: pages of their last state
}


@cache
def reason_against() -> str | None:
    """Return why there can be no cluster in a namespace here; None where there can."""
    if importlib.util.find_spec("ray") is None:
        return "Ray is not installed: pip install 'sadrec[ray]'"
    try:
        tried = subprocess.run([*ALONE, "ip", "link", "set", "lo", "up"], capture_output=True, check=False)
    except FileNotFoundError:
        return "this system has no unshare"
    return None if tried.returncode == 0 else "this system allows no network namespace (unshare -n, as root)"


def alone(*command: str) -> list[str]:
    """Return the command that runs a command in a namespace."""
    return [*ALONE, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command]


def environment(folder: str) -> dict[str, str]:
    """Return the environment for it; Ray keeps its files in a folder with a short name."""
    paths = [str(Path(__file__).parents[1]), *sys.path]
    return {**os.environ, **_ENVIRONMENT, "RAY_TMPDIR": folder, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run(*command: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a command in a namespace, with a folder for Ray's files; options are those of ``subprocess.run``."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(alone(*command), env=environment(folder), text=True, check=False, **options)


def inside() -> bool:
    """Tell whether this process is in a namespace of its own."""
    return _INSIDE in os.environ


def start(nodes: int, cpus: int = 1, store: int = LEAST_STORE) -> Any:
    """Start nodes, connect to them, and return what ends them."""
    import ray
    from ray.cluster_utils import Cluster

    if not inside():
        raise RuntimeError("a cluster is started in a namespace of its own only")
    node = _node(cpus, store)
    for left in reversed(range(_STARTS)):
        try:
            made = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
            break
        except Exception as error:  # a busy machine: Ray waits for 30 s and no longer
            if not left or "timed out during startup" not in str(error):
                raise
    for _ in range(nodes - 1):
        add_node(made, cpus, store)
    made.wait_for_nodes()
    ray.init(address=made.address, _node_ip_address="127.0.0.1", log_to_driver=False, logging_level=logging.ERROR)
    return made


def add_node(made: Any, cpus: int = 1, store: int = LEAST_STORE) -> None:
    """Start one more node."""
    made.add_node(**_node(cpus, store))


def _node(cpus: int, store: int) -> dict[str, Any]:
    return {"num_cpus": cpus, "object_store_memory": store, "node_ip_address": "127.0.0.1"}


def end(made: Any) -> None:
    """End the nodes."""
    import ray

    ray.shutdown()
    made.shutdown()
