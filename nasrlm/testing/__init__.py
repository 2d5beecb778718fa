"""Conformance kits: call one in a test of your own space, device, evaluator or tokenizer.

Each returns None when the contract is kept and raises `ConformanceError`, which says what is not, otherwise.
"""

from __future__ import annotations

from nasrlm.testing.common import ConformanceError
from nasrlm.testing.devices import check_device, check_measurement
from nasrlm.testing.evaluators import check_evaluator, check_values
from nasrlm.testing.sampling import check_sampling
from nasrlm.testing.spaces import check_network, check_space
from nasrlm.testing.tokenizers import check_tokenizer

__all__ = [
    "ConformanceError",
    "check_device",
    "check_evaluator",
    "check_measurement",
    "check_network",
    "check_sampling",
    "check_space",
    "check_tokenizer",
    "check_values",
]
