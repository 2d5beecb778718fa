"""nasrlm predict: metrics of networks from a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasrlm.cli.common import File, Json, Space, out, out_json, say
from nasrlm.cli.networks import find_network, network_name, read_lines
from nasrlm.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd


def command(
    networks: Annotated[
        list[str] | None,
        typer.Argument(metavar="NETWORK", help="Architecture strings or .onnx files; - reads standard input."),
    ] = None,
    checkpoint: Annotated[
        str, typer.Option(metavar="NAME", help="A shipped checkpoint's name, or a folder.")
    ] = "nasbench201",
    file: File = None,
    space: Space = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="A,B", help="The metrics, with commas; default: all it knows.")
    ] = None,
    quantiles: Annotated[str | None, typer.Option(metavar="0.1,0.9", help="Quantiles to add, between 0 and 1.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE.csv", help="Write CSV there.")] = None,
    as_json: Json = False,
) -> None:
    """Predict metrics of architectures or .onnx files."""
    levels = _numbers(quantiles)
    names = [name.strip() for name in metrics.split(",") if name.strip()] if metrics else None
    found = [find_network(text, space) for text in read_lines(networks or [], file)]
    from nasrlm.rlm import RegressionLM

    model = RegressionLM.from_pretrained(checkpoint)
    frame = model.predict(found, names, quantiles=levels)
    _give(_named(frame, found), output, as_json)


def _named(frame: pd.DataFrame, networks: list[Any]) -> pd.DataFrame:
    named = frame.reset_index(drop=True)
    named.insert(0, "architecture_id", [network_name(network) for network in networks])
    named.insert(1, "arch", [getattr(network, "string", str(network)) for network in networks])
    return named


def _give(frame: pd.DataFrame, output: Path | None, as_json: bool) -> None:
    if output is not None:
        from nasrlm.experiment.files import make_folder, write_csv

        make_folder(output.parent)
        write_csv(output, frame)
        say(f"wrote {output}")
    elif as_json:
        out_json(frame.to_dict("records"))
    else:
        out(frame.to_csv(index=False, float_format="%.6g", lineterminator="\n").rstrip("\n"))


def _numbers(text: str | None) -> tuple[float, ...]:
    """The quantiles, checked.

    >>> _numbers("0.1, .9")
    (0.1, 0.9)
    """
    found = []
    for word in (text or "").split(","):
        if not word.strip():
            continue
        try:
            value = float(word)
        except ValueError:
            value = -1.0
        if not 0 < value < 1:
            allowed = "numbers above 0 and below 1, such as 0.1,0.9"
            raise UsageError(f"--quantiles has {word.strip()!r}. Allowed: {allowed}.")
        found.append(value)
    return tuple(found)
