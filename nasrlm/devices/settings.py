"""What the devices that time networks on this machine can be told, checked once."""

from __future__ import annotations

from dataclasses import dataclass

from nasrlm.devices.options import check_positive, check_whole


@dataclass(frozen=True)
class Settings:
    """How a network is run and timed.

    Attributes:
        device: the device's name, for messages and for the metric.
        threads: threads inside an operator; operators run one after another.
        batch_size: examples a run; networks for one example, or with a free batch dimension, are widened to it.
        warm_up: runs before the clock starts.
        repeats: timed runs.
        seconds: limit of one series; at least five runs are timed.
        tries: how often a series is measured until it is stable.
        max_spread: distance of the quartiles divided by the median, up to which a series is stable.
        seed: of the random input.

    Raises:
        ConfigError: a value outside its range.

    Example:
        >>> Settings("onnxruntime_cpu", threads=2).metric
        'latency_ms/onnxruntime_cpu_t2'
    """

    device: str
    threads: int = 1
    batch_size: int = 1
    warm_up: int = 3
    repeats: int = 100
    seconds: float = 2.0
    tries: int = 3
    max_spread: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        for option in ("threads", "batch_size", "repeats", "tries"):
            check_whole(self.where, option, getattr(self, option))
        check_whole(self.where, "warm_up", self.warm_up, least=0)
        check_whole(self.where, "seed", self.seed, least=0)
        for option in ("seconds", "max_spread"):
            check_positive(self.where, option, getattr(self, option))

    @property
    def where(self) -> str:
        """Words for messages: "device onnxruntime_cpu"."""
        return f"device {self.device}"

    @property
    def metric(self) -> str:
        """The metric's name. Values measured with other settings are not comparable, so they are another metric."""
        batch = f"_b{self.batch_size}" if self.batch_size > 1 else ""
        pool = f"_t{self.threads}" if self.threads > 1 else ""
        return f"latency_ms/{self.device}{batch}{pool}"
