"""Verbs that need no model: list, new, check, show, export; output, exit codes, machine-readable forms."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nasrlm
from nasrlm.cli import main
from nasrlm.cli.common import cell, out_table
from nasrlm.cli.new import TEMPLATES
from nasrlm.errors import RunError
from nasrlm.graph import costs
from nasrlm.spaces import get_space

ARCH = '{"depth":2,"width":8,"kernel":3,"pool":"max","residual":true,"skip_kernel":1}'


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert output(capsys, "--version") == f"nasrlm {nasrlm.__version__}\n"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from nasrlm.cli import main; main(['--help']); "
        "heavy = {'torch', 'onnx', 'optuna', 'pandas', 'numpy', 'pydantic', 'ruamel.yaml', 'matplotlib'}; "
        "bad = heavy & set(sys.modules); "
        "sys.exit(', '.join(sorted(bad)) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_python_m_is_the_same_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nasrlm", "list", "spacs"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: unknown kind 'spacs'. Nearest: spaces.")


def test_no_arguments_show_the_help_and_are_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Usage: nasrlm" in capsys.readouterr().out


def test_a_failed_run_exits_with_1_and_an_interrupt_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from nasrlm.experiment import run

    def fail(*_: object, **__: object) -> None:
        raise RunError("the evaluator broke.")

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run", fail)
    assert main(["search", "a.yaml"]) == 1
    assert capsys.readouterr().err == "error: the evaluator broke.\n"
    monkeypatch.setattr(run, "run", interrupt)
    assert main(["search", "a.yaml"]) == 130
    assert "the same command goes on with it" in capsys.readouterr().err


@pytest.mark.parametrize(
    "kind", ["spaces", "devices", "evaluators", "samplers", "metrics", "checkpoints", "experiments"]
)
def test_list_fits_80_columns_and_has_a_json_form(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "list", kind)
    assert max(map(len, text.splitlines())) <= 80
    rows = json.loads(output(capsys, "list", kind, "--json"))
    assert isinstance(rows, list)


def test_list_names_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(output(capsys, "list", "--json"))
    assert {"nasbench201", "tiny"} <= {row["name"] for row in found["spaces"]}
    assert {row["name"]: row["architectures"] for row in found["spaces"]}["nasbench201"] == 15625
    assert "onnxruntime_cpu" in {row["name"] for row in found["devices"]}
    assert {"rlm", "table", "cost", "device"} <= {row["name"] for row in found["evaluators"]}
    assert {"params", "latency_ms/onnxruntime_cpu"} <= {row["name"] for row in found["metrics"]}


def test_list_spaces_shows_size_objectives_and_source(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "list", "spaces")
    line = next(line for line in text.splitlines() if line.lstrip().startswith("nasbench201 "))
    assert "15,625   accuracy (3)," in line
    rows = {row["name"]: row for row in json.loads(output(capsys, "list", "spaces", "--json"))}
    assert "latency_ms/pixel3" in rows["nasbench201"]["metrics"]
    assert "arXiv:2001.00326" in rows["nasbench201"]["source"]


def test_list_spaces_shows_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = output(capsys, "list", "spaces", "snas")
    assert "1.3e20 = 126,323,976,969,019,355,904" in text
    assert re.search(r"pool_1 \.\.\. pool_6 +6 +none, max, avg +stride_i: 2", text)
    assert re.search(r"in_channels +1 +Channels of the input\.", text)
    facts = json.loads(output(capsys, "list", "spaces", "tiny", "--json"))
    assert facts["architectures"] == 144
    assert get_space("tiny").architecture(facts["example"]).string == facts["example"]
    assert facts["parameters"][-1] == {
        "parameter": "skip_kernel", "number": 1, "values": "0, 1", "only if": "residual: True",
    }  # fmt: skip
    file = str(tmp_path / "my_space.py")
    assert main(["new", "space", file]) == 0
    capsys.readouterr()
    assert "architectures: 135" in output(capsys, "list", "spaces", file)


@pytest.mark.parametrize(
    ("words", "part"),
    [(["spaces", "tinny"], "Nearest: tiny"), (["devices", "tiny"], "only `nasrlm list spaces` takes a name")],
)
def test_list_refuses_other_names(words: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", *words]) == 2
    assert part in capsys.readouterr().err


@pytest.mark.parametrize("kind", list(TEMPLATES))
def test_new_writes_a_file_once(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / f"mine{Path(TEMPLATES[kind]).suffix}"
    assert main(["new", kind, str(file)]) == 0
    text = file.read_text(encoding="utf-8")
    assert "MY_NAME" not in text
    assert "mine" in text
    assert main(["new", kind, str(file)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["new", kind, str(file), "--force"]) == 0


def test_new_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert "kind: search" in output(capsys, "new", "search", "-")


@pytest.mark.parametrize("kind", ["train", "evaluate"])
def test_templates_pass_the_check(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "mine.yaml")
    assert main(["new", kind, file]) == 0
    assert main(["check", file]) == 0
    captured = capsys.readouterr()
    assert f"is a correct experiment of kind {kind}" in captured.out
    assert "the table is not there yet" in captured.err


def test_a_new_space_passes_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "my_space.py")
    assert main(["new", "space", file]) == 0
    assert "is a correct search space" in output(capsys, "check", file)
    assert get_space(file).size() == 5 * 3 * 3 * 3


def test_a_new_evaluator_and_device_can_be_used(tmp_path: Path) -> None:
    from nasrlm.devices import get_device
    from nasrlm.evaluators import get_evaluator

    for kind in ("evaluator", "device"):
        assert main(["new", kind, str(tmp_path / f"{kind}.py")]) == 0
    tiny = get_space("tiny")
    evaluator = get_evaluator(str(tmp_path / "evaluator.py"), tiny)
    frame = evaluator.evaluate(tiny.sample(3, seed=0), evaluator.metrics)
    assert frame.shape == (3, 1)
    assert (frame > 0).to_numpy().all()
    assert get_device(str(tmp_path / "device.py")).metric == "latency_ms/device"


def test_show_an_architecture(capsys: pytest.CaptureFixture[str]) -> None:
    architecture = get_space("tiny").architecture(ARCH)
    text = output(capsys, "show", ARCH)
    assert text.startswith(f"{architecture.id}\n")
    assert "conv 8 k3" in text
    facts = json.loads(output(capsys, "show", ARCH, "--json", "--space", "tiny"))
    assert facts["costs"]["params"] == costs(architecture).params
    assert facts["space"] == "tiny"
    assert facts["words"] == len(facts["text"].split())


def test_export_to_files_and_back_gives_the_same_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(output(capsys, "export", ARCH, "--json"))
    assert main(["export", ARCH, "-o", str(tmp_path / "out")]) == 0
    identity = get_space("tiny").architecture(ARCH).id
    files = {file.name for file in (tmp_path / "out").iterdir()}
    assert files == {f"{identity}.onnx", f"{identity}.txt"}
    assert (tmp_path / "out" / f"{identity}.txt").read_text(encoding="utf-8") == facts["text"] + "\n"
    read = json.loads(output(capsys, "export", str(tmp_path / "out" / f"{identity}.onnx"), "--json"))
    assert read["text"] == facts["text"]
    assert read["costs"]["params"] == facts["costs"]["params"]


def test_export_from_a_file_of_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "archs.txt"
    strings = [a.string for a in get_space("tiny").sample(3, seed=1)]
    file.write_text("# three\n\n" + "\n".join(strings) + "\n", encoding="utf-8")
    found = json.loads(output(capsys, "export", "--file", str(file), "--space", "tiny", "--json"))
    assert [item["network"] for item in found] == [get_space("tiny").architecture(s).id for s in strings]


MODULE = """\
import torch
def network():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU()), torch.zeros(1, 3, 8, 8)
def several():
    return 3
size = 5
"""


def test_export_of_a_text_and_of_a_torch_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MODULE, encoding="utf-8")
    facts = json.loads(output(capsys, "export", "mine.py:network", "--json"))
    assert facts["text"] == "nasrlm1\nin 1x3x8x8\nconv 8 k3 p0\nrelu"
    assert (facts["network"], facts["costs"]["params"]) == ("Sequential", 3 * 8 * 9 + 8)
    Path("net.txt").write_text(facts["text"] + "\n", encoding="utf-8")
    again = json.loads(output(capsys, "export", "net.txt", "--json"))
    assert (again["text"], again["costs"]) == (facts["text"], facts["costs"])


def test_export_draws_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", ARCH, "--picture", str(tmp_path / "graph.svg")]) == 0
    captured = capsys.readouterr()
    assert f"drew {tmp_path / 'graph.svg'}" in captured.err
    assert captured.out.startswith("# ")
    assert "<svg" in (tmp_path / "graph.svg").read_text(encoding="utf-8")


def test_export_of_files_that_do_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MODULE, encoding="utf-8")
    Path("net.txt").write_text("conv 3", encoding="utf-8")
    for arguments, part in (
        (["mine.py:netwrok"], "Nearest: network."),
        (["mine.py:several"], "several() in mine.py gives int; it must give (torch module, example inputs)"),
        (["none.py:network"], "none.py"),
        (["net.txt"], "net.txt begins with 'conv 3'"),
        (["none.txt"], "none.txt"),
        ([ARCH, "--picture", "a.jpg"], "a picture cannot be 'a.jpg'"),
        ([ARCH, ARCH, "--picture", "a.svg"], "2 networks do not fit one picture a.svg"),
    ):
        assert main(["export", *arguments]) == 2, arguments
        captured = capsys.readouterr()
        assert (captured.out, captured.err[:7]) == ("", "error: ")
        assert part in captured.err
        assert "Traceback" not in captured.err


def test_export_weights_makes_a_model_that_runs(tmp_path: Path) -> None:
    from nasrlm.devices import get_device

    file = tmp_path / "a.onnx"
    assert main(["export", ARCH, "-o", str(file), "--weights"]) == 0
    assert get_device("onnxruntime_cpu", repeats=5, tries=1).measure(file.read_bytes()).median_ms > 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["export", "none.onnx"], "there is no file none.onnx"),
        (["export", ARCH, ARCH, "-o", "a.txt"], "2 networks do not fit one file"),
        (["export", ARCH, "--format", "pdf"], "unknown format 'pdf'"),
        (["export", "--file", "none.txt"], "none.txt cannot be read"),
        (["show", ARCH, "--space", "nasbench201"], "|"),
        (["plot", "."], "is no run folder"),
        (["plot", ".", "--format", "jpg"], "unknown format 'jpg'"),
    ],
)
def test_wrong_use(
    arguments: list[str], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert part in captured.err
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def test_cells_are_short() -> None:
    values = (0.123456, 1234567.0, 93.456, float("nan"), True, None, 12345, ("a", "b"), 123456.7)
    assert [cell(v) for v in values] == ["0.1235", "1,234,567", "93.46", "-", "yes", "", "12,345", "a, b", "123,457"]


def test_tables_keep_markup_characters(capsys: pytest.CaptureFixture[str]) -> None:
    out_table([{"arch": "|a~0|+[b]|", "n": 1}])
    assert "|a~0|+[b]|" in capsys.readouterr().out
