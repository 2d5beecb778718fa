"""Search spaces: parameters, architectures, and the moves between them."""

from nasrlm.errors import SpaceError
from nasrlm.spaces.load import get_space
from nasrlm.spaces.options import check_sizes
from nasrlm.spaces.parameters import Choice, Integer, Parameter, Params, Value, When
from nasrlm.spaces.space import Architecture, SearchSpace, Seed, generator
from nasrlm.spaces.strings import check_values

__all__ = [
    "Architecture",
    "Choice",
    "Integer",
    "Parameter",
    "Params",
    "SearchSpace",
    "Seed",
    "SpaceError",
    "Value",
    "When",
    "check_sizes",
    "check_values",
    "generator",
    "get_space",
]
