"""Child processes that do not outlive the process that started them."""

import os
from multiprocessing import parent_process
from multiprocessing.connection import wait
from threading import Thread


def end_with_parent() -> None:
    """From now on, end this process when its parent has ended, in whatever way.

    A parent that was killed closes no pipe whose end another child holds too, so its children would wait forever.
    """
    if parent := parent_process():
        Thread(target=_wait, args=(parent.sentinel,), daemon=True).start()


def _wait(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
