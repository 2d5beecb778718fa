"""Who is at what: a worker claims its batch before it evaluates it, so that none is evaluated or counted twice.

A claim is a running trial of a second study, ``NAME.claims``, in the same storage. Every storage of Optuna numbers
the trials of a study one after another, whoever adds them, so claims have an order that all workers agree on: of two
that want the same, the one with the lower number has it. A claim ends once: its worker completes it when the batch's
trials are stored, or another worker fails it when its heartbeat has stopped, and takes over what it left.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState, create_trial

from nasrlm.search.storage import SETTINGS

BEAT_S = 10.0  # a worker shows so often that it lives
LEASE_S = 60.0  # a claim whose beat has not changed for so long is its worker's no more
_WORKER, _BATCH, _TOTAL, _BEAT, _ARCHS = "worker", "batch", "n_trials", "beat", "architectures"


@dataclass(frozen=True)
class Claim:
    """A batch that a worker is at.

    Attributes:
        id: Of the trial that stands for it, in its storage.
        number: Its place among all claims of the study.
        worker, batch: Whose it is, and which of his; as in the trials that come of it.
        total: Trials that this worker wants the study to have.
        archs: The architectures, as strings.
        beat: Changes as long as the worker lives.
    """

    id: int
    number: int
    worker: str
    batch: int
    total: int
    archs: tuple[str, ...]
    beat: int


class Claims:
    """The claims of a study, as one worker sees and makes them; a thread shows that it lives until `close`."""

    def __init__(self, study: optuna.Study, worker: str) -> None:
        self._study = _open(study)
        self._storage, self._worker = self._study._storage, worker
        self._mine: int | None = None
        self._heard: dict[int, tuple[int, float]] = {}  # claim -> its beat, and when that was new here
        self._orphans: list[Claim] = []
        self._closed = threading.Event()
        threading.Thread(target=self._beat, daemon=True, name=f"claims of {worker}").start()

    def take(self, batch: int, total: int, archs: Sequence[str]) -> list[Claim]:
        """Claim a batch. Returns the claims that came before it: what they hold is not this worker's."""
        attributes = {_WORKER: self._worker, _BATCH: batch, _TOTAL: total, _BEAT: 0, _ARCHS: list(archs)}
        template = create_trial(state=TrialState.RUNNING, user_attrs=attributes)
        self._mine = self._storage.create_new_trial(self._study._study_id, template)
        running = self._running()
        number = next(claim.number for claim in running if claim.id == self._mine)
        return [claim for claim in self._living(running) if claim.number < number]

    def others(self) -> list[Claim]:
        """What other workers are at; claims whose heartbeat has stopped are ended."""
        return self._living(self._running())

    def keep(self, archs: Sequence[str]) -> None:
        """Give back all of the claim but these."""
        with contextlib.suppress(UpdateFinishedTrialError):  # `held` will say so
            self._storage.set_trial_user_attr(self._mine or 0, _ARCHS, list(archs))

    def held(self) -> bool:
        """Whether the claim is still this worker's: another may have held it for dead."""
        return self._mine is not None and self._storage.get_trial(self._mine).state == TrialState.RUNNING

    def finish(self, trials: int) -> None:
        """The batch's trials are stored."""
        self._end(TrialState.COMPLETE, [float(trials)])

    def release(self) -> None:
        """Let others have the claim."""
        self._end(TrialState.PRUNED)

    def take_over(self) -> list[Claim]:
        """End the claims that this worker itself left when it was killed, and return them."""
        left = [claim for claim in self._running() if claim.worker == self._worker]
        return [claim for claim in left if self._fail(claim)]

    def orphans(self) -> list[Claim]:
        """Claims of dead workers that this one has ended since it asked last."""
        orphans, self._orphans = self._orphans, []
        return orphans

    def close(self) -> None:
        """Release what is held and stop the heartbeat; a storage that is out of reach is left alone."""
        self._closed.set()
        with contextlib.suppress(Exception):  # whatever a storage raises: the lease ends the claim then
            self.release()

    def _running(self) -> list[Claim]:
        trials = self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        return [_claim(trial) for trial in trials]

    def _living(self, running: Sequence[Claim]) -> list[Claim]:
        now, living, heard = time.monotonic(), [], {}
        for claim in running:
            if claim.id == self._mine:
                continue
            beat, since = self._heard.get(claim.id, (claim.beat, now))
            heard[claim.id] = beat, since = (beat, since) if beat == claim.beat else (claim.beat, now)
            if now - since <= LEASE_S:
                living.append(claim)
            elif self._fail(claim):
                self._orphans.append(claim)
        self._heard = heard
        return living

    def _fail(self, claim: Claim) -> bool:
        with contextlib.suppress(UpdateFinishedTrialError):
            return self._storage.set_trial_state_values(claim.id, TrialState.FAIL)
        return False

    def _end(self, state: TrialState, values: Sequence[float] | None = None) -> None:
        mine, self._mine = self._mine, None
        if mine is not None:
            with contextlib.suppress(UpdateFinishedTrialError):
                self._storage.set_trial_state_values(mine, state, values)

    def _beat(self) -> None:
        beat = 0
        while not self._closed.wait(BEAT_S):
            beat += 1
            mine = self._mine
            if mine is not None:
                # The claim may just have ended, or the storage be out of reach: the worker itself will see.
                with contextlib.suppress(Exception):
                    self._storage.set_trial_user_attr(mine, _BEAT, beat)


def _open(study: optuna.Study) -> optuna.Study:
    claims = optuna.create_study(
        storage=study._storage, study_name=f"{study.study_name}.claims", direction="maximize", load_if_exists=True
    )
    if SETTINGS not in claims.user_attrs:
        claims.set_user_attr(SETTINGS, {"claims_of": study.study_name})
    return claims


def _claim(trial: FrozenTrial) -> Claim:
    attributes = trial.user_attrs
    return Claim(
        id=trial._trial_id,
        number=trial.number,
        worker=attributes[_WORKER],
        batch=attributes[_BATCH],
        total=attributes[_TOTAL],
        archs=tuple(attributes[_ARCHS]),
        beat=attributes[_BEAT],
    )
