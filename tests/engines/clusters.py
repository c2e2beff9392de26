"""Ray clusters of several machines, simulated on this one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.training.small import ROOT

# Ray takes 127.0.0.1 for the machine's outer address, and would not find a cluster that listens to no other.
NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.2", "object_store_memory": 100 * 2**20}
"""A machine with one core."""


@contextmanager
def simulated(*, cores: int) -> Iterator[Any]:
    """A `ray.cluster_utils.Cluster` with a head of so many cores; the test is skipped without Ray."""
    pytest.importorskip("ray", reason="Ray is not installed (the extra `cluster`)")
    from ray.cluster_utils import Cluster

    before = os.environ.copy()
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT)}
    made = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": cores, "include_dashboard": False})
    try:
        yield made
    finally:
        made.shutdown()
        os.environ.clear()
        os.environ |= before
