"""Settings: typed, checked, with the nearest word for a mistake."""

from __future__ import annotations

from typing import Any

import pytest

from nasrlm.errors import ConfigError
from nasrlm.rlm import RLMConfig, TrainConfig


@pytest.mark.parametrize("config", [RLMConfig(metrics=("a", "b"), width=64), TrainConfig(epochs=3, seed=5)])
def test_round_trip(config: RLMConfig | TrainConfig) -> None:
    assert type(config).from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("cls", "settings", "message"),
    [
        (TrainConfig, {"learning_rat": 1e-3}, "unknown key 'learning_rat' of TrainConfig. Nearest: learning_rate"),
        (RLMConfig, {"widht": 64}, "Nearest: width"),
        (RLMConfig, {"width": 100, "heads": 8}, "does not split into 8 heads"),
        (RLMConfig, {"width": "wide"}, "width is 'wide'. Allowed: int"),
        (RLMConfig, {"width": True}, "width is True. Allowed: int"),
        (RLMConfig, {"metrics": "accuracy"}, "Allowed: a list of names"),
        (RLMConfig, {"metrics": ["a", "a"]}, "name one twice"),
        (RLMConfig, {"too_long": "cutt"}, "too_long is 'cutt'. Allowed: cut, error, drop"),
        (RLMConfig, {"dropout": 1.0}, "dropout is 1.0"),
        (TrainConfig, {"optimizer": "adam"}, "Allowed: adamw"),
        (TrainConfig, {"epochs": 0}, "epochs is 0"),
        (TrainConfig, {"batch_size": 0}, "at least 1"),
        (TrainConfig, {"chain": 1.5}, "chain is 1.5"),
        (TrainConfig, {"precision": "float16"}, "bfloat16"),
    ],
)
def test_mistakes(cls: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        cls.from_dict(settings)


def test_whole_numbers_are_floats_too() -> None:
    assert TrainConfig.from_dict({"clip": 1}).clip == 1.0
