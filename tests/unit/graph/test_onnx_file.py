"""Opening ONNX files: large ones without their weights, damaged and hostile ones with a message."""

from __future__ import annotations

import gzip
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from nasrlm.errors import ExportError
from nasrlm.graph import to_text
from nasrlm.graph.onnx_file import open_model

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node, value = helper.make_node, helper.make_tensor_value_info


def network(nodes: list | None = None, initializers: list = (), opset: int = 17, **more: object) -> ModelProto:
    """x (2, 4) -> y (2, 4)."""
    graph = helper.make_graph(
        [node("Relu", ["x"], ["y"])] if nodes is None else nodes,
        "g",
        [value("x", FLOAT, [2, 4])],
        [value("y", FLOAT, [2, 4])],
        list(initializers),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, **more)


def tensor(name: str, data: object, dtype: object = np.float32) -> TensorProto:
    return numpy_helper.from_array(np.asarray(data, dtype), name)


def saved(model: ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def varint(n: int) -> bytes:
    return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])


def message(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


# --- large files ----------------------------------------------------------------------------------------------


def with_hole(path: Path, rows: int) -> None:
    """A model with one weight of rows x 4096 zeros, which take no room on the disk."""
    model = network(
        [node("Pad", ["x", "pads"], ["p"]), node("MatMul", ["p", "w"], ["z"]), node("Relu", ["z"], ["y"])],
        [tensor("pads", [0, 0, 0, rows - 4], np.int64)],
    )
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 4096
    entries = rows * 4096 * 4
    head = TensorProto(name="w", dims=[rows, 4096], data_type=FLOAT).SerializeToString() + varint(9 << 3 | 2)
    head += varint(entries)
    graph = model.graph.SerializeToString() + varint(5 << 3 | 2) + varint(len(head) + entries) + head
    model.ClearField("graph")
    with path.open("wb") as file:
        file.write(model.SerializeToString() + varint(7 << 3 | 2) + varint(len(graph) + entries) + graph)
        file.truncate(file.tell() + entries)


@pytest.mark.parametrize("rows", [20_000, 200_000])
def test_a_file_larger_than_protobuf_allows_costs_kilobytes(rows: int, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "large.onnx"
    with_hole(path, rows)
    assert path.stat().st_size > rows * 4096 * 4
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        model = open_model(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024
    assert model.ByteSize() < 1000
    left = model.graph.initializer[1]
    assert (left.name, list(left.dims), left.data_type) == ("w", [rows, 4096], FLOAT)
    assert left.data_location == TensorProto.EXTERNAL
    assert f"%{rows}x4096" in to_text(path) or "linear 4096" in to_text(path)


def kinds_of_entries() -> list[TensorProto]:
    many, few = np.arange(20_000) % 7, np.arange(4)
    packed = helper.make_tensor("floats", FLOAT, [20_000], many.astype(np.float32))
    half = helper.make_tensor("halves", TensorProto.FLOAT16, [200, 300], np.ones(60_000, np.float16))
    double = helper.make_tensor("doubles", TensorProto.DOUBLE, [20_000], many.astype(np.float64))
    return [tensor("raw", many), packed, half, double, tensor("few", few), tensor("ids", np.arange(100_000), np.int64)]


def test_what_is_read_is_kept_and_all_else_left_out(tmp_path: Path) -> None:
    mask = tensor("mask", np.tril(np.ones((1, 1, 200, 200))))
    given = [*kinds_of_entries(), mask]
    kept = {t.name: t for t in open_model(saved(network(initializers=given), tmp_path)).graph.initializer}
    for before in given:
        after = kept[before.name]
        assert (after.dims, after.data_type) == (before.dims, before.data_type)
        if before.name in ("few", "ids", "mask"):
            assert after == before
        else:
            assert after.data_location == TensorProto.EXTERNAL and after.ByteSize() < 100


def test_entries_that_are_a_field_each_are_left_out(tmp_path: Path) -> None:
    head = TensorProto(name="w", dims=[20_000], data_type=FLOAT).SerializeToString()
    unpacked = (varint(4 << 3 | 5) + b"\0\0\x80?") * 20_000
    path = tmp_path / "model.onnx"
    path.write_bytes(network().SerializeToString() + message(7, message(5, head + unpacked)))
    assert open_model(path).graph.initializer[0].ByteSize() < 100


def test_constants_in_nodes_and_sub_graphs_are_left_out(tmp_path: Path) -> None:
    constant = node("Constant", [], ["w"], value=tensor("w", np.ones((2, 4, 9000))))
    body = helper.make_graph(
        [constant, node("ReduceSum", ["w", "two"], ["s"], keepdims=0), node("Add", ["x", "s"], ["t"])],
        *("body", [], [value("t", FLOAT, [2, 4])]),
    )
    nodes = [node("If", ["c"], ["y"], then_branch=body, else_branch=body)]
    model = network(nodes, [tensor("two", [2], np.int64), tensor("c", True, bool)])
    assert model.ByteSize() > 500_000
    opened = open_model(saved(model, tmp_path))
    assert opened.ByteSize() < 2000
    assert to_text(opened) == to_text(saved(model, tmp_path)) == to_text(model)


def test_sparse_initializers_become_dense(tmp_path: Path) -> None:
    model = network([node("Add", ["x", "w"], ["y"])])
    sparse = helper.make_sparse_tensor(tensor("w", [1.0]), tensor("i", [3], np.int64), [2, 4])
    model.graph.sparse_initializer.append(sparse)
    assert "%2x4" in to_text(saved(model, tmp_path))
    assert to_text(model) == to_text(saved(model, tmp_path))
    assert len(model.graph.sparse_initializer) == 1, "a model in memory must not change"


# --- external data --------------------------------------------------------------------------------------------


def with_external(folder: Path, location: str = "w.bin", **more: object) -> Path:
    model = network([node("Add", ["x", "w"], ["y"])], [tensor("w", np.ones((2, 4)))])
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, entry in {"location": location, **more}.items():
        weight.external_data.add(key=key, value=str(entry))
    return saved(model, folder)


def test_external_data_are_looked_for_and_not_opened(tmp_path: Path) -> None:
    path = with_external(tmp_path, offset=8, length=32)
    (tmp_path / "w.bin").write_bytes(bytes(40))
    assert "%2x4" in to_text(path)
    (tmp_path / "w.bin").write_bytes(bytes(39))
    with pytest.raises(ExportError, match=r"'w'.*'w.bin' has 39 bytes, 40 are needed"):
        open_model(path)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(ExportError, match=r"'w' lies in the file 'w.bin', which is not in"):
        open_model(path)
    assert "%2x4" in to_text(onnx.load(path, load_external_data=False)), "in memory nobody knows the folder"


@pytest.mark.parametrize(
    "location",
    ["../w.bin", "a/../../w.bin", "/etc/passwd", "..\\w.bin", "C:\\w.bin", "", "out/w.bin", "a\0b", "w" * 300],
)
def test_external_data_outside_the_folder_are_refused(location: str, tmp_path: Path) -> None:
    folder, other = tmp_path / "model", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    for place in (tmp_path, other):
        (place / "w.bin").write_bytes(bytes(32))
    (folder / "out").symlink_to(other)
    with pytest.raises(ExportError, match="'w'.* lies in "):
        open_model(with_external(folder, location))


@pytest.mark.parametrize("more", [{"offset": -8}, {"length": -1}, {"length": 12}, {"offset": "far"}, {"offset": 2**70}])
def test_wrong_places_in_external_data_are_refused(more: dict, tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(32))
    with pytest.raises(ExportError, match="external|offset"):
        open_model(with_external(tmp_path, **more))


# --- files that are no model ----------------------------------------------------------------------------------


def test_the_message_says_what_a_file_looks_like(tmp_path: Path) -> None:
    import torch

    torch.save({"w": torch.ones(3)}, tmp_path / "weights.pt")
    torch.save({"w": torch.ones(3)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("model.onnx", "x")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x" * 100))
    texts = {"readme.txt": "It is a text.\n" * 300, "lfs": "version https://git-lfs.github.com/spec/v1\noid"}
    texts |= {"page": "<!DOCTYPE html><html>", "nasrlm.txt": "nasrlm1\nin 1x3x8x8\nrelu\n", "x.json": '{"a": 1}'}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "empty").touch()
    (tmp_path / "tf.pb").write_bytes(message(1, b"\n\x03abc") * 5)
    (tmp_path / "random").write_bytes(np.random.default_rng(0).bytes(5000))
    said = {
        "weights.pt": "PyTorch file.*torch.onnx.export",
        "old.pt": "pickle",
        "a.zip": "zip archive",
        "a.gz": "gzip",
        "readme.txt": "a text file",
        "lfs": "git lfs pull",
        "page": "download has failed",
        "nasrlm.txt": "canonical text",
        "x.json": "JSON",
        "empty": "is empty",
        "tf.pb": "no graph|no ONNX model",
        "random": "damaged, cut short or no ONNX model",
    }
    assert {p.name for p in tmp_path.iterdir()} == set(said)
    for name, words in said.items():
        with pytest.raises(ExportError, match=f"{name}.*({words})"):
            open_model(tmp_path / name)


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    path = saved(network(), tmp_path)
    with pytest.raises(
        ExportError, match=r"cannot read .*modell.onnx': No such file.*Nearest in its folder: model.onnx"
    ):
        open_model(tmp_path / "modell.onnx")
    with pytest.raises(ExportError, match=r"folder .*none' does not exist"):
        open_model(tmp_path / "none" / "model.onnx")
    with pytest.raises(ExportError, match=r"it is a folder. Give a file in it: model.onnx"):
        open_model(tmp_path)
    with pytest.raises(ExportError, match="cannot read"):
        open_model("a\0b")
    with pytest.raises(ExportError, match="cannot read"):
        open_model("x" * 5000)
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for ever
    with pytest.raises(ExportError, match="no regular file"):
        open_model(tmp_path / "pipe")
    if os.geteuid():  # root may read everything
        path.chmod(0)
        with pytest.raises(ExportError, match="Permission denied"):
            open_model(path)


def test_cut_files_say_where(tmp_path: Path) -> None:
    data = network(initializers=[tensor("w", np.ones(50_000))]).SerializeToString()
    path = tmp_path / "model.onnx"
    for length in (5, 30, 70, 1000, len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(ExportError, match=r"at byte \d+.*The file is damaged, cut short or no ONNX model"):
            open_model(path)


@pytest.mark.parametrize("deep", [20, 40, 10_000])
def test_nesting_has_an_end(deep: int, tmp_path: Path) -> None:
    graph = message(1, message(2, b"a") + message(4, b"Relu")) + message(12, message(1, b"a"))
    for _ in range(deep):
        attribute = message(1, b"body") + message(6, graph) + varint(20 << 3) + varint(5)
        loop = message(1, b"c") * 2 + message(2, b"a") + message(4, b"Loop") + message(5, attribute)
        graph = message(1, loop) + message(12, message(1, b"a"))
    opset = message(8, varint(2 << 3) + varint(17))
    path = tmp_path / "model.onnx"
    path.write_bytes(opset + message(7, graph))
    with pytest.raises(ExportError, match="nested more than 16 deep"):
        open_model(path)


def test_entries_must_fit_the_dimensions(tmp_path: Path) -> None:
    for n, dims in ((20_000, [20_001]), (20_000, [3]), (4, [5]), (4, [2**40, 2**40]), (20_000, [-1]), (8, [-2, -4])):
        wrong = tensor("w", np.ones(n))
        wrong.dims[:] = dims
        for source in (network(initializers=[wrong]), saved(network(initializers=[wrong]), tmp_path)):
            with pytest.raises(ExportError, match=r"tensor 'w'.*(expected|absurd|negative)"):
                open_model(source)


def test_a_model_may_be_old_or_new_in_everything_but_its_opset(tmp_path: Path) -> None:
    for version in (0, 1, 3, 99, 2**40):
        model = network()
        model.ir_version = version
        assert to_text(saved(model, tmp_path)) == to_text(network())
    for opset in (1, 8, 10_000, -1):
        with pytest.raises(ExportError, match=f"opset {opset} of ONNX; allowed: 9 to"):
            open_model(network(opset=opset))
