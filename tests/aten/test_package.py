# SPDX-License-Identifier: BSD-3-Clause
"""The package stands alone, refuses another torch, and lists its mechanisms."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import openreg_aten
from support.programs import ROOT, Ended, Program
from support.versions import MINOR

PACKAGES = ROOT / "packages"


def output(done: Ended) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_package_without_others_trains_with_the_numbers_of_the_cpu(
    run_python: Program,
) -> None:
    source = """
    import sys

    class Blocker:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in ("torch_openreg", "openreg_amp"):
                raise ModuleNotFoundError(f"{name} is above openreg_aten", name=name)

    sys.meta_path.insert(0, Blocker())
    import torch
    import openreg_aten
    from torch import nn

    torch.set_num_threads(1)

    def losses(device):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
        x = torch.randn(32, 8).to(device)
        y = torch.randint(3, (32,)).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        result = []
        for _ in range(10):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            result.append(loss.item())
        return result

    on_device = losses("privateuseone")
    assert on_device == losses("cpu"), on_device
    assert on_device[-1] < on_device[0]
    assert not any(
        name.partition(".")[0] in ("torch_openreg", "openreg_amp")
        for name in sys.modules
    )
    print(torch.ones(1, device="privateuseone").device)
    print(torch.accelerator.current_accelerator())
    """
    assert output(run_python(source)).split() == ["privateuseone:0", "privateuseone"]


def test_other_torch_is_refused_and_both_versions_are_named(
    run_python: Program,
) -> None:
    source = """
    from importlib import metadata
    version = metadata.version
    metadata.version = lambda name: "1.2.3+cpu" if name == "torch" else version(name)
    try:
        import openreg_aten
    except RuntimeError as error:
        print(error)
    import sys
    assert "torch" not in sys.modules, "the wrong torch was loaded"
    """
    text = output(run_python(source))
    assert "built for torch 2." in text
    assert MINOR in text
    assert "torch 1.2.3+cpu is installed" in text
    assert 'pip install "torch==2.' in text


def test_other_or_missing_runtime_is_refused(run_python: Program) -> None:
    source = """
    from importlib import metadata
    version = metadata.version

    def other(name):
        if name == "openreg-runtime":
            return "9.9"
        return version(name)

    def missing(name):
        if name == "openreg-runtime":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    for metadata.version, kind in (
        (other, RuntimeError), (missing, ModuleNotFoundError)
    ):
        try:
            import openreg_aten
        except kind as error:
            print(error)
    """
    first, second = output(run_python(source)).splitlines()
    install = f"pip install openreg-runtime=={openreg_aten.__version__}"
    assert "9.9 is installed" in first
    assert first.endswith(install)
    assert "which is not installed" in second
    assert second.endswith(install)


def test_mechanisms_are_unique_sorted_and_on() -> None:
    rows = openreg_aten.mechanisms()
    names = [name for name, *_ in rows]
    assert names == sorted(set(names))
    assert {"allocator", "generator", "guard", "hooks", "fallback"} <= set(names)
    assert all(summary and without for _, summary, without, _, _ in rows)
    assert all(enabled for *_, enabled in rows)


def test_every_mechanism_is_defined_in_the_source_that_it_names() -> None:
    for name, _, _, source, _ in openreg_aten.mechanisms():
        text = (PACKAGES / source).read_text()
        assert re.search(rf"OPENREG_MECHANISM(_\w+)?\(\s*{name},", text), name


DISABLED = {
    "generator": (
        "torch.randn(3, device=d)",
        "NotImplementedError",
        "getDefaultGenerator",
    ),
    "convolution": (
        "torch.conv2d(torch.ones(1, 1, 3, 3, device=d), "
        "torch.ones(1, 1, 2, 2, device=d))",
        "NotImplementedError",
        "convolution_overrideable not implemented",
    ),
    "rnn": (
        "torch.ops.aten._thnn_fused_lstm_cell(*torch.ones(3, 1, 8, device=d))",
        "NotImplementedError",
        "_thnn_fused_lstm_cell",
    ),
    "fallback": (
        "torch.empty(0, dtype=int, device=d).bincount()",
        "NotImplementedError",
        "aten::bincount",
    ),
    "sparse": (
        "torch.eye(2, device=d).to_sparse() * 2",
        "NotImplementedError",
        "aten::mul",
    ),
    "sparse_compressed": (
        "torch.eye(2, device=d).to_sparse_csr() @ torch.ones(2, device=d)",
        "NotImplementedError",
        "aten::addmv",
    ),
    "nested": (
        "torch.nested.as_nested_tensor([torch.ones(2, device=d)]) * 2",
        "NotImplementedError",
        "aten::mul",
    ),
    "quantized": (
        "torch.relu(torch.quantize_per_tensor(torch.ones(2, device=d), 1, 0, "
        "torch.quint8))",
        "NotImplementedError",
        "aten::relu",
    ),
    "hooks": (
        "torch.Generator(d)",
        "RuntimeError",
        "Please register PrivateUse1HooksInterface",
    ),
    "host_allocator": (
        "torch.ones(1, device=d), torch.ones(1).pin_memory()",
        "NotImplementedError",
        "getPinnedMemoryAllocator",
    ),
    "copy": ("torch.ones(2).to(d)", "NotImplementedError", "_copy_from"),
}


@pytest.mark.parametrize("name", DISABLED)
def test_disabled_mechanism_fails_as_pytorch_documents(
    run_python: Program, name: str
) -> None:
    use, error, message = DISABLED[name]
    source = f"""
    import torch
    import openreg_aten
    d = "privateuseone"
    off = [each for each, *_, enabled in openreg_aten.mechanisms() if not enabled]
    assert off == [{name!r}], off
    try:
        {use}
    except Exception as error:
        print(type(error).__name__, error)
    """
    text = output(run_python(source, OPENREG_DISABLE=f" {name} ,"))
    assert text.startswith(error), text
    assert message in text


def test_disabled_attention_only_changes_the_choice(run_python: Program) -> None:
    source = """
    import torch
    import openreg_aten
    q = torch.ones(1, 1, 4, 8, device="privateuseone", requires_grad=True)
    out = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    print(type(out.grad_fn).__name__)
    """
    assert "FlashAttentionForCpu" in output(run_python(source))
    without = output(run_python(source, OPENREG_DISABLE="attention"))
    assert "FlashAttention" not in without


@pytest.fixture
def python_path(tmp_path: Path) -> str:
    """Also finds a package with its own mechanism."""
    metadata = tmp_path / "other-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: other\n")
    entry = "[openreg.mechanisms]\nof_another = other\n"
    (metadata / "entry_points.txt").write_text(entry)
    return os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))


def test_several_mechanisms_and_names_of_other_packages_are_accepted(
    run_python: Program, python_path: str
) -> None:
    source = """
    import openreg_aten
    print([name for name, *_, enabled in openreg_aten.mechanisms() if not enabled])
    """
    names = "of_another,dropout, rnn"
    done = run_python(source, OPENREG_DISABLE=names, PYTHONPATH=python_path)
    assert output(done).strip() == "['dropout', 'rnn']"
    done = run_python(source, OPENREG_DISABLE=names)
    assert "'of_another' is not a mechanism" in done.stderr


def test_unknown_mechanism_is_refused_with_the_names(
    run_python: Program, python_path: str
) -> None:
    done = run_python(
        "import openreg_aten", OPENREG_DISABLE="rnn,warp", PYTHONPATH=python_path
    )
    assert done.returncode == 1
    message = done.stderr.strip().splitlines()[-1]
    variable = "environment variable OPENREG_DISABLE='rnn,warp' is not valid: expected"
    assert variable in message
    assert message.endswith("'warp' is not a mechanism")
    accepted = message.partition("names from ")[2].partition(";")[0].split(", ")
    assert accepted == sorted(accepted)
    names = {name for name, *_ in openreg_aten.mechanisms()}
    assert {*names, "of_another"} <= set(accepted)


def test_import_works_where_other_libraries_use_the_static_tls(
    run_python: Program,
) -> None:
    done = run_python(
        "import openreg_aten",
        GLIBC_TUNABLES="glibc.rtld.optional_static_tls=128",  # bytes; 512 by default
    )
    assert done.returncode == 0, done.stderr
