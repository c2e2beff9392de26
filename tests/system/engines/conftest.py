"""A Ray cluster of several machines, simulated on this one."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.training.small import ROOT

# Ray takes 127.0.0.1 for the machine's outer address, and would not find a cluster that listens to no other.
NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.2", "object_store_memory": 100 * 2**20}
"""A machine with one core."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A `ray.cluster_utils.Cluster` of a head without cores, and two machines, which a test may replace.

    One for all tests: a process that has been in two clusters is told that its new actors have no owner, at times.
    """
    pytest.importorskip("ray", reason="Ray is not installed (the extra `cluster`)")
    from ray.cluster_utils import Cluster

    before = os.environ.copy()
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT)}
    made = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0, "include_dashboard": False})
    try:
        made.machines = [made.add_node(**NODE) for _ in range(2)]
        yield made
    finally:
        made.shutdown()
        os.environ.clear()
        os.environ |= before
