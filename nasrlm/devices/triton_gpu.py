"""An NVIDIA graphics processor through torch.compile, which writes Triton kernels; timed by Triton's do_bench."""

from __future__ import annotations

from typing import Any

from nasrlm.devices.batching import with_batch_size
from nasrlm.devices.inputs import Input, random_inputs
from nasrlm.devices.measurement import Measurement, summarise
from nasrlm.devices.networks import graph_of
from nasrlm.devices.nvidia import need_gpu
from nasrlm.devices.options import check_choice, check_positive
from nasrlm.devices.settings import Settings
from nasrlm.devices.timing import steadiest
from nasrlm.errors import DeviceError, ExportError

PRECISIONS = ("float32", "float16", "bfloat16")
MODES = ("default", "reduce-overhead", "max-autotune")


class TritonGpu:
    """Times networks on an NVIDIA GPU, compiled by torch.compile into Triton kernels.

    The network is rebuilt as a torch module with random weights and compiled, which takes from seconds to minutes
    and is not timed. `triton.testing.do_bench` then runs it with a cleared L2 cache before each run.

    Args:
        precision: "float32", "float16" or "bfloat16", of weights and float input.
        mode: of torch.compile: "default", "reduce-overhead" (CUDA graphs) or "max-autotune".
        batch_size: examples a run.
        warm_up_ms: milliseconds of runs before the clock starts.
        repeat_ms: milliseconds of timed runs, about.
        tries, max_spread, seed: as for onnxruntime_cpu.

    Raises:
        ConfigError: an option outside its range.
        DeviceError: no GPU, or torch without CUDA or triton.
    """

    name = "triton_gpu"

    def __init__(
        self,
        precision: str = "float32",
        mode: str = "default",
        batch_size: int = 1,
        warm_up_ms: float = 25.0,
        repeat_ms: float = 200.0,
        tries: int = 3,
        max_spread: float = 0.1,
        seed: int = 0,
    ) -> None:
        self.settings = Settings(self.name, batch_size=batch_size, tries=tries, max_spread=max_spread, seed=seed)
        where = self.settings.where
        check_choice(where, "precision", precision, PRECISIONS)
        check_choice(where, "mode", mode, MODES)
        check_positive(where, "warm_up_ms", warm_up_ms)
        check_positive(where, "repeat_ms", repeat_ms)
        self.precision, self.mode, self.warm_up_ms, self.repeat_ms = precision, mode, warm_up_ms, repeat_ms
        other = [word for word in (precision, mode) if word not in ("float32", "default")]
        self.metric = "_".join([self.settings.metric, *other])
        need_gpu(where)
        _need_packages(where)

    def measure(self, model: bytes) -> Measurement:
        """Times a serialized ONNX model, in milliseconds a batch.

        Raises:
            DeviceError: torch cannot build, compile or run the model.
        """
        import torch
        from triton.testing import do_bench

        module, inputs = torch_network(model, self.settings, self.precision, "cuda")
        # Each network is compiled once: what was compiled for those before would fill torch's cache.
        torch.compiler.reset()
        compiled = torch.compile(module, mode=self.mode)

        def series() -> Measurement:
            times = do_bench(lambda: compiled(*inputs), warmup=self.warm_up_ms, rep=self.repeat_ms, return_mode="all")
            return summarise(times, 1, self.settings.max_spread)

        try:
            with torch.inference_mode():
                return steadiest(series, self.settings.tries)
        except (RuntimeError, torch._dynamo.exc.TorchDynamoException) as error:
            raise DeviceError(
                f"{self.settings.where}: torch cannot compile or run this network: "
                f"{(str(error).strip().splitlines() or [type(error).__name__])[0]}"
            ) from error


def torch_network(model: bytes, settings: Settings, precision: str, place: str) -> tuple[Any, list[Any]]:
    """The network as a torch module with random weights, and its random input.

    Args:
        model: serialized ONNX.
        settings: batch size and seed count.
        precision: element type of weights and float input.
        place: torch's device, "cuda" or "cpu".

    Raises:
        DeviceError: a network that torch has no modules for, or whose input has no fixed size.
    """
    import torch

    from nasrlm.graph import to_torch

    if settings.batch_size > 1:
        model = with_batch_size(model, settings.batch_size)
    graph = graph_of(model, settings.where)
    specs = [Input(f"input {i}", graph.dtypes[i], graph.shapes[i]) for i in graph.inputs]
    arrays = random_inputs(specs, settings).values()
    dtype = getattr(torch, precision)
    try:
        module = to_torch(graph, seed=settings.seed).eval().to(place, dtype)
    except ExportError as error:
        raise DeviceError(f"{settings.where}: {error}") from error
    tensors = [torch.from_numpy(array).to(place) for array in arrays]
    return module, [tensor.to(dtype) if tensor.is_floating_point() else tensor for tensor in tensors]


def _need_packages(where: str) -> None:
    import importlib.util

    import torch

    if not torch.cuda.is_available():
        raise DeviceError(
            f"{where}: this torch {torch.__version__} cannot use the GPU. Install torch's CUDA build "
            "(https://pytorch.org/get-started/locally)."
        )
    if importlib.util.find_spec("triton") is None:
        raise DeviceError(f"{where} needs the package triton. Run `pip install 'nasrlm[triton]'`.")


DEVICE = TritonGpu
