"""The same network for another batch size."""

from __future__ import annotations

from nasrlm.errors import DeviceError


def with_batch_size(model: bytes, size: int) -> bytes:
    """A serialized ONNX model whose inputs take `size` examples at once instead of one.

    Every input that is not a weight must have 1, or nothing fixed, as its first dimension. Stated shapes behind
    the inputs are dropped, so that the runtime works them out anew; a shape that the network computes with (a
    Reshape to a fixed batch) stays, and the runtime then refuses to run it.

    Raises:
        DeviceError: not an ONNX model, or an input with another fixed first dimension.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        proto = onnx.load_model_from_string(model)
    except DecodeError as error:
        raise DeviceError(f"these {len(model)} bytes are no ONNX model: {error}.") from error
    weights = {initializer.name for initializer in proto.graph.initializer}
    for value in proto.graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name in weights or not dims:
            continue
        if dims[0].dim_value > 1:
            raise DeviceError(
                f"the network's input {value.name!r} has the fixed batch size {dims[0].dim_value}, so it cannot "
                f"run with batch_size {size}. Set batch_size: {dims[0].dim_value}, or export it with one example."
            )
        dims[0].dim_value = size
    del proto.graph.value_info[:]
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    return proto.SerializeToString()
