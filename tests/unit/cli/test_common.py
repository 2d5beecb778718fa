"""Tables for people."""

from __future__ import annotations

import pytest

from nasrlm.cli import common


@pytest.mark.parametrize("columns", [3, 5, 7])
def test_a_table_never_cuts_a_number(columns: int, capsys: pytest.CaptureFixture[str]) -> None:
    values = {f"forest_rho_{i}": 0.1234 + i / 10 for i in range(columns)}
    common.out_table([{"metric": "latency_ms/titan_rtx_256", **values}])
    text = capsys.readouterr().out
    assert all(len(line) <= common.WIDTH for line in text.splitlines())
    assert all(f"{value:.4f}" in text for value in values.values())


def test_ids_stay_whole_where_there_is_room(capsys: pytest.CaptureFixture[str]) -> None:
    common.out_table(
        [{"architecture": "nasbench201-c84450b7c0", "confirmed\naccuracy/cifar10": 94.01, "params": 1.0}] * 2
    )
    assert capsys.readouterr().out.count("nasbench201-c84450b7c0") == 2
