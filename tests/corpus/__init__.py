"""Real networks as torch modules, and their exports, for tests of the text."""

from tests.corpus.changes import shuffled, without_weights
from tests.corpus.exports import CANNOT, DIFFERENT, WAYS, export, export_dynamic, exported
from tests.corpus.networks import CORPUS, network

__all__ = [
    "CANNOT",
    "CORPUS",
    "DIFFERENT",
    "WAYS",
    "export",
    "export_dynamic",
    "exported",
    "network",
    "shuffled",
    "without_weights",
]
