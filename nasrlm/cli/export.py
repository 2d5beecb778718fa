"""nasrlm export: networks as text, ONNX and costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nasrlm.cli.common import File, Json, Space, out, out_json, out_table, say
from nasrlm.cli.networks import describe, find_network, network_name, read_lines, tokenizer_of
from nasrlm.errors import UsageError, unknown_name

FORMATS = ("text", "onnx")
_SUFFIX = {"text": ".txt", "onnx": ".onnx"}


def command(
    networks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NETWORK",
            help="Architecture strings, .onnx files, texts in .txt files, or file.py:function; - reads standard input.",
        ),
    ] = None,
    file: File = None,
    space: Space = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="PATH", help="A .txt or .onnx file, or a folder for many."),
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", metavar="text,onnx", help="What to write into a folder.")
    ] = "text,onnx",
    weights: Annotated[bool, typer.Option("--weights", help="Put random weights into ONNX files.")] = False,
    dead_work: Annotated[bool, typer.Option("--dead-work", help="Also list operations without effect.")] = False,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="NAME", help="The checkpoint whose tokens are counted.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Draw the network: a .svg, .png or .pdf file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Export networks to text, ONNX, costs and pictures."""
    wanted = [word.strip() for word in formats.split(",")]
    for word in wanted:
        if word not in FORMATS:
            raise unknown_name("format", word, FORMATS, where="--format")
    found = [find_network(text, space) for text in read_lines(networks or [], file)]
    if picture is not None:
        _draw(found, picture, dead_work)
    if output is not None:
        _write(found, output, wanted, weights, dead_work)
        return
    counter = tokenizer_of(checkpoint, found[0].space.name if hasattr(found[0], "space") else None)
    facts = [{"network": network_name(n), **describe(n, counter, dead_work=dead_work)} for n in found]
    if as_json:
        out_json(facts[0] if len(facts) == 1 else facts)
        return
    for item in facts:
        _print(item)


def _draw(networks: list[Any], file: Path, dead_work: bool) -> None:
    from nasrlm.graph.picture import draw

    if len(networks) > 1:
        raise UsageError(f"{len(networks)} networks do not fit one picture {file}. Give one network.")
    say(f"drew {draw(networks[0], file, dead_work=dead_work)}")


def _print(item: dict[str, Any]) -> None:
    out(f"# {item['network']}\n{item['text']}\n")
    out_table([{"metric": name, "value": value} for name, value in item["costs"].items()])
    out(item["size"] + "\n")


def _write(networks: list[Any], output: Path, formats: list[str], weights: bool, dead_work: bool) -> None:
    from nasrlm.experiment.files import make_folder

    if output.suffix in (".onnx", ".txt"):
        if len(networks) > 1:
            raise UsageError(f"{len(networks)} networks do not fit one file {output}. Give a folder with -o.")
        make_folder(output.parent)
        _write_one(networks[0], output, weights, dead_work)
        say(f"wrote {output}")
        return
    folder = make_folder(output)
    for network in networks:
        for word in formats:
            _write_one(network, folder / f"{network_name(network)}{_SUFFIX[word]}", weights, dead_work)
    say(f"wrote {len(networks)} networks to {folder}")


def _write_one(network: Any, file: Path, weights: bool, dead_work: bool) -> None:
    from nasrlm.experiment.files import write_text
    from nasrlm.graph import as_graph, to_onnx, to_text

    if file.suffix == ".txt":
        write_text(file, to_text(network, dead_work=dead_work) + "\n")
    else:
        graph = network if hasattr(network, "graph") else as_graph(network)
        to_onnx(graph, file, weights="random" if weights else None)  # may write a second file with large weights
