"""Threads take turns with PyTorch."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from transformer.nn.device import in_turns

inside: list[int] = []


@in_turns
def work(item: int) -> tuple[int, int]:
    inside.append(item)
    assert len(inside) == 1, "another thread is at work"
    time.sleep(0.01)
    inside.remove(item)
    if item < 0:
        raise ValueError
    return item, torch.get_num_threads()


def test_one_thread_at_a_time_and_on_one_core() -> None:
    torch.set_num_threads(2)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(8))) == [(item, 1) for item in range(8)]
        with pytest.raises(ValueError):
            pool.submit(work, -1).result()
        assert pool.submit(torch.get_num_threads).result() == 2, "as it was, after an error too"
    assert work(3) == (3, 2), "the main thread has all cores"
