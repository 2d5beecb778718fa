"""Real networks as torch modules, and their exports, for tests of the text."""

from tests.corpus.exports import CANNOT, DIFFERENT, WAYS, export, export_dynamic
from tests.corpus.networks import CORPUS, network

__all__ = ["CANNOT", "CORPUS", "DIFFERENT", "WAYS", "export", "export_dynamic", "network"]
