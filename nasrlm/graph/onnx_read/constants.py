"""Constants of an ONNX model: numbers where they are known, the shape alone of weights."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from nasrlm.errors import ExportError
from nasrlm.graph.dims import Shape
from nasrlm.graph.ops import Op, op
from nasrlm.graph.spec import DTYPES

MOST_FLOATS = 4096
"""Floating-point tensors of at most this many entries are read (scales, bounds, masks); larger ones are weights."""
MOST_ENTRIES = 2**20
"""Integers and booleans (shapes, indices, masks) are read up to here, and nothing larger is ever computed."""
_MOST_WRITTEN = 64
"""Entries of a constant in the text; longer ones are written as a digest."""
_LOWEST = -3.4e38
_MASKED = -1e4
"""Scores are masked by a number below this."""


@dataclass(frozen=True)
class Constant:
    """A tensor that does not depend on the inputs.

    Attributes:
        shape: its shape.
        dtype: element type, in numpy's words.
        data: its entries; whole numbers may be dynamic dimensions (dtype object); None for a weight.
        learned: it comes from an initializer, so that only one entry, or none, tells that it is a number.
    """

    shape: Shape
    dtype: str
    data: np.ndarray | None = None
    learned: bool = False

    @property
    def is_float(self) -> bool:
        """Whether the entries are floating-point numbers."""
        return "float" in self.dtype

    @property
    def is_dynamic(self) -> bool:
        """Whether an entry is a dynamic dimension."""
        return self.data is not None and self.data.dtype == object

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(np.prod(self.shape, dtype=object)) if self.shape else 1

    def uniform(self) -> Any:
        """The value of every entry; None where they differ or are not known."""
        if self.data is None or self.data.size == 0 or self.data.dtype == object:
            return None
        if any(self.data.strides):
            first = self.data.flat[0]
            return first.item() if bool((self.data == first).all()) else None
        return self.data.flat[0].item()


def known(data: Any, dtype: str | None = None) -> Constant:
    """A constant of these entries."""
    array = np.asarray(data)
    if array.dtype == object and all(isinstance(v, (int, np.integer)) for v in array.flat):
        array = array.astype(np.int64)
    return Constant(array.shape, dtype or ("int64" if array.dtype == object else _type_name(array.dtype)), array)


def _type_name(dtype: np.dtype[Any]) -> str:
    return "string" if dtype.kind in "OSU" else dtype.name


def element_type(number: int, where: str) -> str:
    """ONNX's number of an element type in numpy's words."""
    try:
        name = _type_name(helper.tensor_dtype_to_np_dtype(number))
    except (KeyError, TypeError, ValueError):
        raise ExportError(f"{where} has the element type {number}, which ONNX does not know") from None
    if name not in DTYPES:
        raise ExportError(f"{where} has the element type {name}, which texts have not. Allowed: {', '.join(DTYPES)}.")
    return name


def read_tensor(tensor: onnx.TensorProto, *, learned: bool) -> Constant:
    """A tensor of a model; its entries only where they are few and in the file."""
    where = f"tensor {tensor.name!r}"
    dtype = element_type(tensor.data_type, where)
    shape = tuple(tensor.dims)
    if any(n < 0 for n in shape):
        raise ExportError(f"{where} has a negative dimension: {shape}")
    constant = Constant(shape, dtype, None, learned)
    limit = MOST_FLOATS if constant.is_float and not _may_mask(shape) else MOST_ENTRIES
    if constant.size > limit or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return constant
    try:
        data = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise ExportError(f"{where} is damaged: {error}") from error
    return Constant(shape, dtype, data, learned)


def _may_mask(shape: Shape) -> bool:
    """Whether a tensor has the form of a mask of scores, (1, 1, length, length)."""
    return len(shape) > 2 and set(shape[:-2]) == {1} and shape[-1] > 1


def leaf(constant: Constant, shape: Shape | None = None) -> Op:
    """The operator that stands for a constant as an operand.

    Args:
        constant: the tensor.
        shape: () where one number serves for all entries, because the other operands have the shape of the result.
    """
    value = constant.uniform()
    single = constant.size == 1 and constant.data is not None
    if constant.is_float and isinstance(value, float) and value < _LOWEST:
        value = float("-inf")  # exporters mask scores by the lowest number or by minus infinity
    is_number = single or not constant.learned or not constant.is_float or (value == 0 and _is_scores(constant.shape))
    if value is not None and not isinstance(value, (bytes, str)) and is_number:
        if shape == () or (single and constant.shape == ()):
            return op("value", (value,), constant.dtype, ())
        if single:
            return op("value", (value,), constant.dtype, constant.shape)
        if constant.is_float and value == 0:
            return op("const", constant.shape)
    if is_causal(constant):
        return op("value", ("causal",), constant.dtype, constant.shape)
    if constant.is_float:
        return op("weight", constant.shape, constant.dtype)
    return op("value", _entries(constant), constant.dtype, constant.shape)


def _is_scores(shape: Shape) -> bool:
    """Whether a tensor masks the scores of attention: (batch, 1, length, length). One of zeros masks nothing."""
    return len(shape) == 4 and shape[1] == 1 and shape[2] == shape[3] > 1


def _entries(constant: Constant) -> tuple[Any, ...]:
    data = constant.data
    if data is None or data.dtype == object:
        return ("h0",)
    if constant.dtype == "string" or data.size > _MOST_WRITTEN:
        return ("h" + blake2b(repr(data.tolist()).encode(), digest_size=8).hexdigest(),)
    return tuple(data.reshape(-1).tolist())


def is_causal(constant: Constant) -> bool:
    """Whether a tensor masks what comes later: True, or 0 before a large negative number, up to the diagonal."""
    data = constant.data
    if data is None or data.ndim < 2 or data.shape[-1] < 2 or data.dtype == object or data.shape[-2] > data.shape[-1]:
        return False
    seen = np.tril(np.ones(data.shape[-2:], bool), data.shape[-1] - data.shape[-2])
    if data.dtype == bool:
        return bool((data == seen).all())
    return constant.is_float and bool((data[..., seen] == 0).all() and (data[..., ~seen] < _MASKED).all())
