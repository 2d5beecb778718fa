"""Changes to a model that change nothing about the network."""

from __future__ import annotations

import random

import numpy as np
import onnx


def shuffled(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The model with other names and its nodes in another order that is valid as well."""
    rng = random.Random(seed)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    names: dict[str, str] = {"": ""}

    def renamed(name: str) -> str:
        return names.setdefault(name, f"v{rng.getrandbits(48):x}")

    for part in (graph.input, graph.output, graph.initializer, graph.value_info):
        for item in part:
            item.name = renamed(item.name)
    for node in graph.node:
        node.name = f"n{rng.getrandbits(48):x}"
        for field in (node.input, node.output):
            for i, name in enumerate(field):
                field[i] = renamed(name)
    waiting, ready, order = list(graph.node), {i.name for i in (*graph.input, *graph.initializer)} | {""}, []
    while waiting:
        free = [i for i, node in enumerate(waiting) if all(x in ready for x in node.input)]
        node = waiting.pop(rng.choice(free))
        ready.update(node.output)
        order.append(node)
    del graph.node[:]
    graph.node.extend(order)
    return made


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its large learned tensors in a file that is not there."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for tensor in made.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and np.prod(tensor.dims) >= 256:  # exporters keep 1 KiB inside
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="weights.bin")
    return made
