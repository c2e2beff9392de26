"""Threads take turns with PyTorch."""

import os
import threading
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


def test_a_child_takes_its_turn_although_a_thread_of_its_parent_was_at_work() -> None:
    started, end = threading.Event(), threading.Event()

    @in_turns
    def long() -> None:
        started.set()
        end.wait()

    thread = threading.Thread(target=long)
    thread.start()
    started.wait()
    child = os.fork()
    if not child:
        os._exit(in_turns(lambda: 7)())
    deadline = time.monotonic() + 10
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.01)
    if not ended[0]:
        os.kill(child, 9)
        os.waitpid(child, 0)
    end.set()
    thread.join()
    assert ended[0] and os.waitstatus_to_exitcode(ended[1]) == 7
