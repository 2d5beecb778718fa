"""The Regression Language Model: reads canonical text, writes metrics digit by digit."""

from __future__ import annotations

from nasrlm.rlm.config import RLMConfig, TrainConfig
from nasrlm.rlm.head import RegressionHead
from nasrlm.rlm.model import RegressionLM

__all__ = ["RLMConfig", "RegressionHead", "RegressionLM", "TrainConfig"]
