"""A model on disk: config.json, model.safetensors, tokenizer.model, README.md."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

import nasrlm
from nasrlm import registry
from nasrlm.errors import CheckpointError, ConfigError, UnknownNameError, UsageError, nearest
from nasrlm.files import whole_file
from nasrlm.rlm.config import RLMConfig
from nasrlm.rlm.network import RLMNetwork
from nasrlm.tokens import NumberTokens, TextTokenizer

FORMAT = 1
CONFIG, WEIGHTS, TOKENIZER, CARD = "config.json", "model.safetensors", "tokenizer.model", "README.md"
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Parts:
    """What a checkpoint holds."""

    config: RLMConfig
    tokenizer: TextTokenizer
    network: RLMNetwork
    notes: dict[str, Any]


def number_tokens(config: RLMConfig) -> NumberTokens:
    """The number tokens of a model."""
    return NumberTokens(config.mantissa_digits, config.min_exponent, config.max_exponent)


def build_network(config: RLMConfig, tokenizer: TextTokenizer) -> RLMNetwork:
    """A network with first weights."""
    numbers = number_tokens(config)
    return RLMNetwork(config, tokenizer.vocabulary, numbers.vocabulary, numbers.length, tokenizer.compounds())


def write_checkpoint(folder: str | Path, parts: Parts, dtype: str = "float32") -> None:
    """Writes the four files; each is replaced at once, config.json (with the hashes of the others) last.

    Args:
        folder: made when it does not exist.
        parts: the model.
        dtype: how weights are stored: "float32", "float16" or "bfloat16".

    Raises:
        UsageError: an unknown dtype.
        CheckpointError: the folder cannot be written.
    """
    if dtype not in DTYPES:
        raise UsageError(f"dtype is {dtype!r}. Allowed: {', '.join(DTYPES)}.")
    tensors = {k: v.detach().to(DTYPES[dtype]).contiguous() for k, v in parts.network.state_dict().items()}
    files = {WEIGHTS: save(tensors), TOKENIZER: parts.tokenizer.to_bytes()}
    head = {
        "format": FORMAT,
        "text_version": parts.config.text_version,
        "nasrlm": nasrlm.__version__,
        "text_vocabulary": parts.tokenizer.vocabulary,
        "number_tokens": number_tokens(parts.config).to_dict(),
        "dtype": dtype,
        "model": parts.config.to_dict(),
        "training": parts.notes,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    files[CARD] = _card(parts).encode()
    files[CONFIG] = (json.dumps(head, indent=2) + "\n").encode()
    target = Path(folder)
    try:
        for name, data in files.items():
            with whole_file(target / name) as part:
                part.write_bytes(data)
    except OSError as error:
        raise CheckpointError(f"the checkpoint folder {target} cannot be written: {error}. Choose another.") from error


def read_checkpoint(name: str | Path) -> Parts:
    """Reads a shipped checkpoint by name, or a folder.

    Raises:
        CheckpointError: unknown name, missing file, cut short or changed file, another format or text version.
    """
    folder = find_checkpoint(name)
    head = _head(folder)
    try:
        config = RLMConfig.from_dict(head["model"])
    except (ConfigError, TypeError) as error:
        raise CheckpointError(f"{folder / CONFIG} describes no model of this nasrlm: {error}") from error
    data = {file: _verified(folder, file, head) for file in (TOKENIZER, WEIGHTS)}
    tokenizer = TextTokenizer(data[TOKENIZER])
    network = build_network(config, tokenizer)
    _fill(network, data[WEIGHTS], folder / WEIGHTS)
    return Parts(config, tokenizer, network, head.get("training", {}))


def find_checkpoint(name: str | Path) -> Path:
    """The folder that a shipped name or a path stands for.

    Raises:
        CheckpointError: neither a folder nor a shipped name.
    """
    path = Path(name)
    if path.is_dir():
        return path
    if isinstance(name, Path) or len(path.parts) != 1:
        raise CheckpointError(f"there is no checkpoint folder {path}. A checkpoint folder holds {CONFIG}.")
    try:
        return Path(registry.get("checkpoints", str(name)))
    except UnknownNameError as error:
        raise CheckpointError(f"{error} A folder with a {CONFIG} will do as well.") from error


def _head(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        head = json.loads(_bytes(folder, CONFIG))
    except ValueError as error:
        raise CheckpointError(f"{path} is no JSON ({error}): it is cut short or was changed. Get it anew.") from error
    if not isinstance(head, dict) or not {"format", "text_version", "model", "sha256"} <= set(head):
        raise CheckpointError(f"{path} is no nasrlm checkpoint: format, text_version, model or sha256 is missing.")
    if head["format"] != FORMAT:
        raise CheckpointError(f"{path} has format {head['format']}. This nasrlm reads format {FORMAT}.")
    from nasrlm.graph import TEXT_VERSION

    if head["text_version"] != TEXT_VERSION:
        raise CheckpointError(
            f"{path} was trained on text version {head['text_version']}, this nasrlm writes version {TEXT_VERSION}. "
            "Train it anew, or use the nasrlm that it came with."
        )
    return head


def _bytes(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        others = sorted(p.name for p in folder.iterdir())
        close = nearest(name, others)
        hint = f" (there is {', '.join(close)})" if close else ""
        raise CheckpointError(
            f"the checkpoint {folder} has no {name}{hint}. A checkpoint holds {CONFIG}, {WEIGHTS}, {TOKENIZER}."
        ) from None
    except OSError as error:
        raise CheckpointError(f"{folder / name} cannot be read: {error}.") from error


def _verified(folder: Path, name: str, head: dict[str, Any]) -> bytes:
    data = _bytes(folder, name)
    if hashlib.sha256(data).hexdigest() != head["sha256"].get(name):
        raise CheckpointError(
            f"{folder / name} ({len(data)} bytes) is not the file that {CONFIG} was written with: it is cut short or "
            "was changed. Get the checkpoint anew."
        )
    return data


def _fill(network: RLMNetwork, data: bytes, path: Path) -> None:
    try:
        tensors: dict[str, Tensor] = load(data)
    except SafetensorError as error:
        raise CheckpointError(f"{path} is no safetensors file ({error}). Get the checkpoint anew.") from error
    try:
        network.load_state_dict({k: v.float() for k, v in tensors.items()})
    except RuntimeError as error:
        raise CheckpointError(
            f"the weights in {path} do not fit the model and the metrics of {CONFIG}: {error}"
        ) from error


def _card(parts: Parts) -> str:
    metrics = "".join(f"- {metric}\n" for metric in parts.config.metrics)
    size = sum(p.numel() for p in parts.network.parameters())
    return (
        "# A Regression Language Model of nasrlm\n\n"
        f"Reads canonical text (version {parts.config.text_version}) of a network and predicts, with quantiles:\n\n"
        f"{metrics}\n{size:,} parameters, {parts.tokenizer.vocabulary} text pieces. "
        f"Trained on {parts.notes.get('rows', 'an unknown number of')} networks.\n\n"
        "    from nasrlm import RegressionLM\n"
        '    model = RegressionLM.from_pretrained("this folder")\n'
        "    model.predict(networks)\n"
    )
