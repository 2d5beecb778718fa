"""The registered spaces as tests go through them: each once, with images small enough for many networks."""

from __future__ import annotations

import inspect

from nasrlm import registry
from nasrlm.errors import SpaceError
from nasrlm.spaces import SearchSpace, get_space

SIDE = 64
"""Height and width in pixels that tests ask of a space whose images are larger."""


def spaces() -> list[str]:
    """Every name but the second names of others."""
    return [name for name in registry.names("spaces") if registry.alias_of("spaces", name) is None]


def affordable(name: str) -> SearchSpace:
    """A space, with an image of `SIDE` pixels if it has a larger one by default and takes that size."""
    space = get_space(name)
    if "image_size" not in inspect.signature(type(space)).parameters:
        return space
    graph = space.sample(1, seed=0)[0].graph()
    if max(max(graph.shapes[node][1:]) for node in graph.inputs) <= SIDE:
        return space
    try:
        return get_space(name, image_size=SIDE)
    except SpaceError:  # such as one whose networks need at least so many pixels
        return space
