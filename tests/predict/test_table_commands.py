# SPDX-License-Identifier: BSD-3-Clause
"""``openreg-predict ops``, ``models`` and ``devices``."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from openreg_predict import load_device, predict
from openreg_predict.__main__ import main
from openreg_predict._costs.calibration import Calibration
from openreg_predict._costs.cost import predict_all
from openreg_predict._works.table import gemm, work_of_row

ROWS = [
    ("a", "gemm", "m=512;n=1024;k=3072", "f16"),
    ("b", "layer_norm", "m=8192;n=768", "f32"),
    ("c", "all_reduce", "n=2;bytes=4096", "f16"),
    ("d", "cast", "m=16;n=1536", "bf16>fp8"),
    ("e", "moe", "t=64;h=2048;i=768;topk=8;e=128;dist=power_law_1.2", "bf16"),
    ("f", "attn_decode", "b=4;s=512;h=32;kv=4;d=128", "bf16"),
    ("g", "conv_bwd_weight",
     "n=4;c=32;h=79;w=341;k=32;r=5;s=10;ph=0;pw=0;sh=2;sw=2", "f16"),
]  # fmt: skip
GRAPH_HEAD = "graph,op,config,dtype,count,flops,flops_per_batch,bytes,bytes_per_batch"
GRAPH = [
    "net,convolution,Bx3x224x224;64x3x7x7>Bx64x112x112|s2 p3 d1 g1,f16,1,,,,",
    "net,native_batch_norm,Bx64x112x112;64;64;64;64>Bx64x112x112;64;64,f16,1,,,1536,3e6",
    "net,relu_,Bx64x112x112>Bx64x112x112,f16,1,,,,3.2e6",
    "net,sdpa,Bx12x197x64;Bx12x197x64;Bx12x197x64|causal0,f16,12,,,,",
    "net,addmm,1000;Bx64;64x1000>Bx1000,f16,1,,,,",
]


def write(path, head, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)
    return path


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


@pytest.fixture
def table(tmp_path):
    head = ("id", "op_or_model", "config", "dtype")
    return write(tmp_path / "in.csv", head, ROWS)


def run_ops(table, *more):
    out = table.with_name("out.csv")
    words = ["--device", "h100-sxm", "--table", str(table), "--out", str(out)]
    assert main(["ops", *words, *more]) == 0
    return read(out)


def test_each_row_gets_a_time_within_its_bounds(table):
    answers = run_ops(table)
    assert list(answers) == [row[0] for row in ROWS]
    for answer in answers.values():
        low, value, high = (
            float(answer[f"{x}_s"]) for x in ("low", "predicted", "high")
        )
        assert 0 < low <= value <= high


def test_the_command_and_python_agree(table):
    answers = run_ops(table)
    work = work_of_row(*ROWS[0][1:])
    expected = predict(work, load_device("h100-sxm")).value
    assert float(answers["a"]["predicted_s"]) == pytest.approx(expected, rel=1e-5)


def run_models(tmp_path, configs, graph="net"):
    head = ("id", "op_or_model", "config", "dtype", "family", "graph")
    rows = [(str(i), "net", c, "f16", "net", graph) for i, c in enumerate(configs)]
    table = write(tmp_path / "models.csv", head, rows)
    graphs = tmp_path / "graphs.csv"
    graphs.write_text("\n".join([GRAPH_HEAD, *GRAPH]) + "\n")
    out = tmp_path / "out.csv"
    status = main(["models", "--device", "rtx3090", "--table", str(table), "--graphs",
                   str(graphs), "--out", str(out)])  # fmt: skip
    return status, read(out) if status == 0 else None


def test_a_larger_batch_takes_longer_and_compiled_code_does_not(tmp_path):
    base = "mode=infer;amp=f16;layout=nhwc"
    status, answers = run_models(
        tmp_path,
        [f"batch=64;compile=0;{base}", f"batch=512;compile=0;{base}",
         f"batch=512;compile=1;{base}"],
    )  # fmt: skip
    assert status == 0
    small, large, compiled = (float(answers[k]["predicted_s"]) for k in "012")
    assert small < large
    assert compiled < large


def test_a_step_of_a_small_batch_is_bound_by_the_host(tmp_path):
    _, answers = run_models(tmp_path, ["batch=1;mode=infer;compile=0",
                                       "batch=2;mode=infer;compile=0"])  # fmt: skip
    one, two = (float(answers[k]["predicted_s"]) for k in "01")
    assert two < 1.2 * one


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--device", "h1"], "argument --device: device 'h1' is neither"),
        (["--table", "none.csv"], "argument --table: none.csv"),
        (["--out", "no/such/folder.csv"], "argument --out: no/such/folder.csv"),
        (["--calibrate", "none.csv"], "argument --calibrate: none.csv"),
    ],
)
def test_a_wrong_argument_is_named(table, capsys, words, message):
    given = {"--device": "t4", "--table": str(table), "--out": str(table) + ".out"}
    given |= dict([words])
    assert main(["ops", *(w for pair in given.items() for w in pair)]) == 2
    assert message in capsys.readouterr().err


def test_a_wrong_row_is_named_with_its_line(tmp_path, capsys):
    table = write(tmp_path / "in.csv", ("id", "op_or_model", "config", "dtype"),
                  [ROWS[0], ("z", "gem", "m=1", "f16")])  # fmt: skip
    assert main(["ops", "--device", "t4", "--table", str(table), "--out", "x"]) == 2
    assert f"{table}:3: op_or_model 'gem' is not one of" in capsys.readouterr().err


def test_a_missing_column_is_named(tmp_path, capsys):
    table = write(tmp_path / "in.csv", ("id", "config"), [])
    assert main(["ops", "--device", "t4", "--table", str(table), "--out", "x"]) == 2
    assert "has no column op_or_model, dtype" in capsys.readouterr().err


def test_a_missing_graph_is_named(tmp_path, capsys):
    assert run_models(tmp_path, ["batch=1"], graph="other")[0] == 2
    assert "the graph 'other' is not in" in capsys.readouterr().err


def test_devices_are_listed_with_their_fields(capsys):
    assert main(["devices"]) == 0
    assert "h100-sxm" in capsys.readouterr().out
    assert main(["devices", "t4"]) == 0
    assert "size of the device memory" in capsys.readouterr().out


def calibration_rows(factor):
    shapes = [
        (m, n, k) for m in (64, 512, 4096) for n in (1024, 8192) for k in (512, 4096)
    ]
    device = load_device("h100-sxm")
    works = [gemm(1, *shape, "bf16") for shape in shapes]
    times = [factor * each.value for each in predict_all(works, device)]
    return device, works, times


def test_calibration_follows_the_rows_of_the_device():
    device, works, times = calibration_rows(1.4)
    other = gemm(1, 2048, 2048, 2048, "bf16")
    before = predict(other, device)
    (after,) = Calibration(works, times, device).corrected([other], [before])
    assert after.value == pytest.approx(1.4 * before.value, rel=0.1)
    assert after.width < 1.5


@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_calibrated_bounds_follow_the_scatter_of_the_rows(noise):
    device, works, times = calibration_rows(1.0)
    scatter = np.random.default_rng(0).normal(0, noise, (20, len(works)))
    inside = widths = 0.0
    for each in scatter:
        measured = (times * np.exp(each)).tolist()
        known, asked = works[1:], works[:1]
        (after,) = Calibration(known, measured[1:], device).corrected(
            asked, predict_all(asked, device)
        )
        inside += after.low <= measured[0] <= after.high
        widths += after.width / len(scatter)
    assert inside >= 12
    assert widths < 1.5 if noise < 0.1 else widths > 1.5


def test_calibration_leaves_other_classes_alone():
    device, works, times = calibration_rows(1.4)
    other = work_of_row("layer_norm", "m=8192;n=768", "f32")
    before = predict(other, device)
    assert Calibration(works, times, device).corrected([other], [before]) == [before]


def test_the_command_calibrates(table, tmp_path):
    head = ("op_or_model", "config", "dtype", "value")
    rows = [("gemm", f"m={m};n=1024;k=3072", "f16", 1e-3) for m in (256, 512, 1024)]
    measured = write(tmp_path / "measured.csv", head, rows)
    before, after = run_ops(table), run_ops(table, "--calibrate", str(measured))
    assert float(after["a"]["predicted_s"]) > 1.5 * float(before["a"]["predicted_s"])
    assert after["b"] == before["b"]


def test_a_measured_time_that_is_no_number_is_named(table, tmp_path, capsys):
    head = ("op_or_model", "config", "dtype", "value")
    measured = write(tmp_path / "m.csv", head, [("gemm", "m=1;n=1;k=1", "f16", "fast")])
    assert main(["ops", "--device", "t4", "--table", str(table), "--out", "x",
                 "--calibrate", str(measured)]) == 2  # fmt: skip
    assert f"{measured}:2: value must be a time in seconds" in capsys.readouterr().err
