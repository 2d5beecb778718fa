"""The remote device with real commands: those that work, and every way in which one can fail."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nasrlm.devices import get_device
from nasrlm.errors import ConfigError, DeviceError
from nasrlm.graph import to_onnx
from nasrlm.spaces import get_space

MODEL = to_onnx(get_space("tiny").sample(1, seed=0)[0], weights="random").SerializeToString()


def python(code: str, **options: Any) -> Any:
    return get_device("remote", command=[sys.executable, "-c", code], **options)


def test_the_command_gets_the_file_and_its_numbers_count() -> None:
    code = "import os, sys; print('loading'); print(os.path.getsize(sys.argv[1]) / 1000); print('done in 3 s')"
    device = python(code, label="pixel_8")
    assert device.metric == "latency_ms/pixel_8"
    measured = device.measure(MODEL)
    assert measured.median_ms == pytest.approx(len(MODEL) / 1000)
    assert (measured.repeats, measured.stable) == (1, True)


def test_a_real_runtime_in_another_process(tmp_path: Path) -> None:
    script = tmp_path / "time_onnx.py"
    script.write_text(
        "import sys\n"
        "from nasrlm.devices import get_device\n"
        "print(get_device('onnxruntime_cpu', repeats=5, tries=1).measure(open(sys.argv[1], 'rb').read()).median_ms)\n"
    )
    assert get_device("remote", command=f"{sys.executable} {script}").measure(MODEL).median_ms > 0


@pytest.mark.parametrize(
    ("printed", "options", "times"),
    [
        ("3\\n1\\n2", {}, (1.0, 2.0, 3)),
        ("1.5, 2.5 3.5e0;\\n", {}, (1.5, 2.5, 3)),
        ("1500\\n2500\\n", {"unit": "us"}, (1.5, 2.0, 2)),
        ("0.002", {"unit": "s"}, (2.0, 2.0, 1)),
        ("run 1: avg=4.5 ms\\nrun 2: avg=5.5 ms", {"pattern": "avg=([0-9.]+)"}, (4.5, 5.0, 2)),
        ("4", {"repeats": 3}, (4.0, 4.0, 3)),
        ("7 runs\\n4\\n5 done", {}, (4.0, 4.0, 1)),
    ],
)
def test_what_counts_as_times(printed: str, options: dict[str, Any], times: tuple[float, float, int]) -> None:
    measured = python(f"print('{printed}')", **options).measure(MODEL)
    assert (measured.minimum_ms, measured.median_ms, measured.repeats) == pytest.approx(times)


def test_times_far_apart_are_unstable_and_tried_again(tmp_path: Path) -> None:
    log = tmp_path / "calls"
    code = f"open({str(log)!r}, 'a').write('x'); print('1 5 9')"
    assert not python(code, tries=3).measure(MODEL).stable
    assert log.read_text() == "xxx"


def test_the_path_stands_where_it_is_wanted() -> None:
    code = "import sys; print(len(sys.argv)); assert sys.argv[1].endswith('/model.onnx.gz'); assert sys.argv[2] == 'x'"
    device = get_device("remote", command=[sys.executable, "-c", code, "{model}.gz", "x"])
    assert device.measure(MODEL).median_ms == 3


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print('hello')", "printed no time: no a line"),
        ("", "printed no time"),
        ("print(0)", "printed '0', which is no time"),
        ("print(-3)", "printed '-3'"),
        ("print('nan')", "printed 'nan'"),
        ("print('inf')", "printed 'inf'"),
        ("import sys; print(3); print('boom', file=sys.stderr); sys.exit(4)", "code 4 and said 'boom'"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9"),
        ("while True: print('nonsense ' * 1000)", "printed more than"),
        ("import sys; sys.stdout.buffer.write(bytes(range(256)))", "printed no time"),
    ],
)
def test_commands_that_fail(code: str, words: str) -> None:
    with pytest.raises(DeviceError, match=words) as caught:
        python(code).measure(MODEL)
    assert "device remote: the command" in str(caught.value) and "\n" not in str(caught.value).replace("\\n", "")


def test_no_command_and_one_that_may_not_run(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="is not there. Give a program"):
        get_device("remote", command="no_such_program_at_all").measure(MODEL)
    (tmp_path / "data.txt").write_text("1")
    with pytest.raises(DeviceError, match="cannot be started"):
        get_device("remote", command=str(tmp_path / "data.txt")).measure(MODEL)


def test_a_command_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    child = f"import time\nwhile True: open({str(alive)!r}, 'w').write(str(time.time())); time.sleep(0.01)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    device = python(code, timeout_s=1.5)
    with pytest.raises(DeviceError, match=r"had not ended after 1\.5 s.*raise timeout_s"):
        device.measure(MODEL)
    last = alive.read_text()
    time.sleep(0.2)
    assert alive.read_text() == last


def test_what_a_command_leaves_behind_does_not_hold_it_up() -> None:
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(5)']); print(2)"
    assert python(code, timeout_s=4).measure(MODEL).median_ms == 2


def test_it_reads_no_input() -> None:
    assert python("import sys; print(1 + len(sys.stdin.read()))").measure(MODEL).median_ms == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"command": ""}, "Give a command"),
        ({"command": []}, "Give a command"),
        ({"command": ["x", 3]}, "Give a command"),
        ({"command": 3}, "command 3 cannot be read"),
        ({"command": "echo 'x"}, "cannot be read"),
        ({"command": "x", "unit": "sec"}, "unit is 'sec'"),
        ({"command": "x", "label": ""}, "label is ''"),
        ({"command": "x", "timeout_s": 0}, "timeout_s is 0"),
        ({"command": "x", "pattern": "("}, "no regular expression"),
        ({"command": "x", "pattern": "a"}, "has 0 groups"),
        ({"command": "x", "repeat": 2}, "Nearest: repeats"),
        ({}, "needs the option 'command'"),
    ],
)
def test_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        get_device("remote", **options)
