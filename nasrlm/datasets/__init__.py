"""Tables of labelled architectures: loading, splitting, describing, and scoring the order of predictions."""

from __future__ import annotations

from nasrlm.datasets.ranks import RankScores, rank_scores, score_frame
from nasrlm.datasets.split_files import load_split, save_split
from nasrlm.datasets.splits import (
    device_labels,
    graph_groups,
    hold_out_networks,
    split_by_device,
    split_by_graph,
    split_by_seed,
    unseen_graphs,
)
from nasrlm.datasets.statistics import describe
from nasrlm.datasets.table import Table, load_table

__all__ = [
    "RankScores",
    "Table",
    "describe",
    "device_labels",
    "graph_groups",
    "hold_out_networks",
    "load_split",
    "load_table",
    "rank_scores",
    "save_split",
    "score_frame",
    "split_by_device",
    "split_by_graph",
    "split_by_seed",
    "unseen_graphs",
]
