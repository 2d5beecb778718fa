"""RegressionLM: the public class. Fit, fine-tune, predict, sample, score, save and load."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from nasrlm.errors import UsageError
from nasrlm.rlm import predicting
from nasrlm.rlm.checkpoint import Parts, build_network, number_tokens, read_checkpoint, write_checkpoint
from nasrlm.rlm.config import RLMConfig, TrainConfig
from nasrlm.rlm.decoding import sample_without_cache
from nasrlm.rlm.fitting import check_labels, hold_out, make_examples, make_folder, widen
from nasrlm.rlm.inputs import as_frame, check_request, encode_texts, metric_indices, read_inputs, read_labels
from nasrlm.rlm.network import RLMNetwork
from nasrlm.rlm.precision import resolve
from nasrlm.rlm.scores import score_table
from nasrlm.rlm.tasks import NumberTask
from nasrlm.rlm.training import Job, Progress, train_network
from nasrlm.rlm.work import Work, plan_work
from nasrlm.tokens import NumberTokens, TextTokenizer

_FINE_TUNE = TrainConfig(epochs=30, learning_rate=5e-4)

Given = Mapping[str, Any]


class RegressionLM:
    """Reads a network's canonical text and writes metrics digit by digit.

    Args:
        config: shape of the model, and its metrics; without metrics `fit` takes the columns of the values.
        precision: float type of predictions: "auto" (the faster one here), "float32" or "bfloat16".

    Example:
        >>> from nasrlm import costs, get_space
        >>> space = get_space("tiny")
        >>> networks = space.sample(8, seed=0)
        >>> values = {"params": [costs(n).params for n in networks]}  # doctest: +SKIP
        >>> model = RegressionLM().fit(networks, values)  # doctest: +SKIP
        >>> model.predict(networks, quantiles=(0.1, 0.9))  # doctest: +SKIP

    Source: the objective prompts and digit tokens follow the Regression Language Models of Akhauri et al. (2025).
    """

    def __init__(self, config: RLMConfig | None = None, *, precision: str = "auto") -> None:
        self.config = config or RLMConfig()
        self.precision = precision
        self._tokenizer: TextTokenizer | None = None
        self._network: RLMNetwork | None = None
        self._reader: RLMNetwork | None = None
        self.notes: dict[str, Any] = {}

    # -- what it is ----------------------------------------------------------------------------------------------

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics it predicts, in declared order."""
        return self.config.metrics

    @property
    def numbers(self) -> NumberTokens:
        """Its number tokens."""
        return number_tokens(self.config)

    @property
    def tokenizer(self) -> TextTokenizer:
        """Its text tokenizer.

        Raises:
            UsageError: the model is not trained yet.
        """
        if self._tokenizer is None:
            raise UsageError("the model is not trained. Call fit, or RegressionLM.from_pretrained.")
        return self._tokenizer

    @property
    def network(self) -> RLMNetwork:
        """Its network, float32.

        Raises:
            UsageError: the model is not trained yet.
        """
        if self._network is None:
            raise UsageError("the model is not trained. Call fit, or RegressionLM.from_pretrained.")
        return self._network

    # -- training ------------------------------------------------------------------------------------------------

    def fit(
        self,
        inputs: Sequence[Any],
        values: Any,
        *,
        validation: tuple[Sequence[Any], Any] | None = None,
        train: TrainConfig | None = None,
        folder: str | Path | None = None,
        progress: Progress | None = None,
    ) -> RegressionLM:
        """Trains from scratch, tokenizer included.

        Args:
            inputs: networks: architectures, graphs, ONNX models or paths, (torch module, example) pairs, texts.
            values: DataFrame (or dict of columns), one row a network, one column a metric; NaN = blank.
            validation: networks and values held out; None takes `train.validation_fraction` of the texts.
            train: how to train.
            folder: where the state is kept (`training_state.safetensors`, `log.jsonl`); the same call goes on from it
                after a kill and gives what the uninterrupted call gives.
            progress: called with a dict: step, steps, epoch, loss or validation scores, seconds.

        Returns:
            The model itself.

        Raises:
            TableError: values that are no numbers, have no rows, or do not match the inputs.
            MetricError: a metric of the configuration without any value.
            TextTooLongError: a text is longer than the model reads.
            RunFolderError: the folder belongs to another training or cannot be written.
            RunError: the loss is no number any more.
        """
        train = train or TrainConfig()
        from nasrlm.graph import TEXT_VERSION

        metrics = self.config.metrics or tuple(str(column) for column in as_frame(values).columns)
        config = dataclasses.replace(self.config, metrics=metrics, text_version=TEXT_VERSION)
        texts = read_inputs(inputs, config.dead_work).texts
        labels = read_labels(values, len(texts), metrics, number_tokens(config))
        check_labels(labels, metrics)
        self.config = config
        self._tokenizer = TextTokenizer.train(texts, config.vocab_size)
        self._network = build_network(config, self._tokenizer)
        return self._train(texts, labels, validation, train, folder, progress)

    def fine_tune(
        self,
        inputs: Sequence[Any],
        values: Any,
        *,
        like: Mapping[str, str] | None = None,
        validation: tuple[Sequence[Any], Any] | None = None,
        train: TrainConfig | None = None,
        folder: str | Path | None = None,
        progress: Progress | None = None,
    ) -> RegressionLM:
        """Trains on; keeps the tokenizer. Columns that the model does not know become new metrics.

        Args:
            inputs: networks, as for `fit`.
            values: values, as for `fit`; metrics without a column are left as they are.
            like: new metric -> known metric whose prompt it starts from; others start from the mean of all prompts.
            validation: as for `fit`.
            train: how to train; by default 30 epochs at a third of the usual learning rate.
            folder: as for `fit`.
            progress: as for `fit`.

        Returns:
            The model itself.

        Raises:
            MetricError: `like` names a metric that the model does not know.
            TableError, TextTooLongError, RunFolderError, RunError: as for `fit`.
        """
        frame = as_frame(values)
        new = [str(column) for column in frame.columns if column not in self.metrics]
        sources = {metric: metric_indices([known], self.metrics)[0] for metric, known in (like or {}).items()}
        metric_indices(list(sources), new)
        texts = read_inputs(inputs, self.config.dead_work).texts
        labels = read_labels(frame, len(texts), (*self.metrics, *new), self.numbers)
        check_labels(labels, ())
        check_labels(labels[:, len(self.metrics) :], new)
        if new:
            self._network = widen(self.network, self.tokenizer, new, sources)
            self.config = self._network.config
        return self._train(texts, labels, validation, train or _FINE_TUNE, folder, progress)

    # -- predictions ---------------------------------------------------------------------------------------------

    def predict(
        self,
        inputs: Sequence[Any],
        metrics: Sequence[str] | None = None,
        *,
        given: Given | None = None,
        quantiles: Sequence[float] = (),
        point: str = "median",
        batch_size: int = 256,
    ) -> pd.DataFrame:
        """Predicts each metric on its own (its marginal distribution, given what is known).

        Args:
            inputs: networks, as for `fit`.
            metrics: names; None = all that are not given.
            given: known metrics: a number for all networks, or one a network.
            quantiles: levels in (0, 1); each adds the columns "metric@level", exact.
            point: "median" (exact), "mean" (of 16 exact quantiles) or "greedy" (most likely digits).
            batch_size: texts a forward pass.

        Returns:
            One row a network, indexed by architecture id (position for other inputs); one column a metric, then the
            quantiles. Texts over the limit that are dropped give NaN.

        Raises:
            MetricError: an unknown metric.
            UsageError: a level or `point` that is not allowed, or a metric that is asked for and given.
        """
        check_request(point, quantiles)
        chosen = self._chosen(metrics, given)
        read = read_inputs(inputs, self.config.dead_work)
        work = self._work(read.texts, given)
        parts = predicting.predict_points(
            self._ready(), self.numbers, work.ids, chosen, point, list(quantiles), work.given, batch_size
        )
        names = [self.metrics[i] for i in chosen]
        columns = [*names, *(f"{name}@{level:g}" for level in quantiles for name in names)]
        return pd.DataFrame(work.spread(parts), index=_index(read.names), columns=columns)

    def read(self, inputs: Sequence[Any]) -> NDArray[np.float64]:
        """What the encoder makes of networks (as for `fit`), before any metric is asked for: features of their texts.

        Returns:
            (networks, 2 x width): mean and maximum over the tokens; NaN for texts that are dropped.
        """
        work = self._work(read_inputs(inputs, self.config.dead_work).texts, None)
        return work.spread(predicting.read_texts(self._ready(), work.ids))

    def sample(
        self,
        inputs: Sequence[Any],
        metrics: Sequence[str] | None = None,
        *,
        n: int = 64,
        seed: int | np.random.Generator = 0,
        given: Given | None = None,
    ) -> NDArray[np.float64]:
        """Joint samples: metrics in the order asked for, each drawn given those before it.

        Returns:
            (networks, n, metrics); NaN for dropped texts.

        Raises:
            MetricError: an unknown metric.
        """
        if n < 1:
            raise UsageError(f"n is {n}. Allowed: 1 and more samples.")
        chosen = self._chosen(metrics, given)
        read = read_inputs(inputs, self.config.dead_work)
        work = self._work(read.texts, given, distinct=False)
        rng = np.random.default_rng(seed)
        found = predicting.draw_samples(
            self._ready(), self.numbers, work.ids, metrics=chosen, n=n, rng=rng, given=work.given
        )
        return work.spread(found)

    def log_prob(self, inputs: Sequence[Any], values: Any) -> pd.DataFrame:
        """Natural logarithm of the exact probability of values (rounded to the model's digits).

        Args:
            inputs: networks, as for `fit`.
            values: one row a network, one column a metric; NaN = blank.

        Returns:
            One column a metric: log p(value | network, the values in the columns before it); 0 for blanks, so that
            the sum of a row is the joint log-probability. NaN for dropped texts.

        Raises:
            MetricError: an unknown metric.
        """
        frame = as_frame(values)
        names = [str(column) for column in frame.columns]
        chosen = metric_indices(names, self.metrics)
        read = read_inputs(inputs, self.config.dead_work)
        labels = read_labels(frame, len(read.texts), names, self.numbers)
        work = self._work(read.texts, None, distinct=False)
        found = predicting.log_probs(self._ready(float32=True), self.numbers, work.ids, labels[work.rows], chosen)
        return pd.DataFrame(work.spread(found), index=_index(read.names), columns=names)

    def score(self, inputs: Sequence[Any], values: Any, *, point: str = "median") -> pd.DataFrame:
        """Agreement with true values: rho (Spearman), tau (Kendall's tau-b), mae (in the metric's unit), n rows.

        Returns:
            Indexed by metric. rho and tau are NaN with fewer than 3 values or constant true values, 0 for constant
            predictions.

        Raises:
            MetricError: an unknown metric.
        """
        frame = as_frame(values)
        names = [str(column) for column in frame.columns]
        metric_indices(names, self.metrics)
        labels = read_labels(frame, len(inputs), names, self.numbers)
        predicted = self.predict(inputs, names, point=point).to_numpy()
        return score_table(labels, predicted, names)

    def sampled_median_uncached(
        self, inputs: Sequence[Any], metric: str, n: int = 64, seed: int | np.random.Generator = 0
    ) -> pd.Series:
        """Median of `n` samples the published way, without any cache: only to measure against.

        Returns:
            One value a network, indexed as `predict` does.
        """
        (chosen,) = metric_indices([metric], self.metrics)
        read = read_inputs(inputs, self.config.dead_work)
        ids, _ = encode_texts(read.texts, self.tokenizer, self.config)
        rng, reader = np.random.default_rng(seed), self._ready()
        with torch.inference_mode():
            found = [
                float(np.median(sample_without_cache(reader, self.numbers, torch.from_numpy(row), chosen, n, rng)))
                for row in ids
            ]
        return pd.Series(found, index=_index(read.names), name=metric)

    # -- on disk -------------------------------------------------------------------------------------------------

    def save_pretrained(self, folder: str | Path, *, dtype: str = "float32") -> None:
        """Writes a checkpoint folder: config.json, model.safetensors, tokenizer.model, README.md.

        Args:
            folder: made when it does not exist; files of an older checkpoint in it are replaced.
            dtype: how weights are stored: "float32", "float16" or "bfloat16".

        Raises:
            CheckpointError: the folder cannot be written.
        """
        write_checkpoint(folder, Parts(self.config, self.tokenizer, self.network, self.notes), dtype)

    @classmethod
    def from_pretrained(cls, name: str | Path, *, precision: str = "auto") -> RegressionLM:
        """Reads a checkpoint: a shipped name (`nasrlm list checkpoints`) or a folder.

        Raises:
            CheckpointError: unknown name, missing file, cut short or changed file, another text version.
        """
        parts = read_checkpoint(name)
        model = cls(parts.config, precision=precision)
        model._tokenizer, model._network, model.notes = parts.tokenizer, parts.network, parts.notes
        return model

    # -- inside --------------------------------------------------------------------------------------------------

    def _train(
        self,
        texts: Sequence[str],
        labels: NDArray[np.float64],
        validation: tuple[Sequence[Any], Any] | None,
        train: TrainConfig,
        folder: str | Path | None,
        progress: Progress | None,
    ) -> RegressionLM:
        examples = make_examples(texts, labels, self.tokenizer, self.config)
        if validation is None:
            examples, held = hold_out(examples, train)
        else:
            held_texts = read_inputs(validation[0], self.config.dead_work).texts
            held_labels = read_labels(validation[1], len(held_texts), self.metrics, self.numbers)
            held = make_examples(held_texts, held_labels, self.tokenizer, self.config)
        path = None if folder is None else make_folder(folder)
        self._reader = None
        task = NumberTask(self.config, self.numbers, train)
        job = Job(self.network, self.tokenizer, task, examples, held, train, path, progress)
        log = train_network(job)
        self.notes = {"rows": len(examples), "train": train.to_dict(), "validation": log[-1] if log else {}}
        return self

    def _chosen(self, metrics: Sequence[str] | None, given: Given | None) -> list[int]:
        known = set(given or {})
        if metrics is None:
            return [at for at, metric in enumerate(self.metrics) if metric not in known]
        chosen = metric_indices(metrics, self.metrics)
        both = [self.metrics[at] for at in chosen if self.metrics[at] in known]
        if both:
            raise UsageError(f"{', '.join(both)} is both given and asked for. Ask for the other metrics only.")
        return chosen

    def _work(self, texts: Sequence[str], given: Given | None, distinct: bool = True) -> Work:
        return plan_work(texts, given, self.tokenizer, self.config, self.numbers, distinct)

    def _ready(self, float32: bool = False) -> RLMNetwork:
        """The network in the float type of predictions; kept until the weights change."""
        dtype = resolve(self.precision)
        if float32 or dtype == torch.float32:
            return self.network.eval()
        if self._reader is None:
            self._reader = copy.deepcopy(self.network).to(dtype).eval()
        return self._reader


def _index(names: Sequence[Any]) -> pd.Index:
    return pd.Index(names, name="architecture_id")
