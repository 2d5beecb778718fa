"""What happens around a study: Ctrl-C waits until a batch is stored, and Optuna is quiet."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import optuna


@contextmanager
def finish_first() -> Iterator[None]:
    """Hold a Ctrl-C back until what is being written is whole; inside another such block, until that one ends."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed and callable(before):
        before(signal.SIGINT, None)  # by default it raises KeyboardInterrupt
    elif pressed and before is not signal.SIG_IGN:
        raise KeyboardInterrupt


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Keep Optuna's notes about studies made and opened off standard error; its warnings stay."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, logging.WARNING))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
