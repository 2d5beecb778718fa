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
    """Hold a Ctrl-C back until what is being written is whole."""
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
    if pressed:
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
