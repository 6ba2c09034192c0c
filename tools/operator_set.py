# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/operator_set.md: the operators that a backend must register, and why.

    python tools/operator_set.py          # write the page
    python tools/operator_set.py --check  # fail if the page is not current

Builds examples/minimal_backend so that an environment variable can leave out any
registration, including the fallback, and runs small programs without each operator in
turn. It needs the build requirements of the skeleton, and torch-openreg.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

from pages import main
from workspace import ROOT

import libopenreg

PAGE = ROOT / "docs" / "operator_set.md"
SKELETON = ROOT / "examples" / "minimal_backend"
WORK = ROOT / "build" / "operator_set"
TREE = WORK / "tree"
VARIABLE = "MINIMAL_LEFT_OUT"
FALLBACK = "fallback"

KEPT = f"""
#include <cstdlib>
#include <string>
namespace torch_minimal {{
inline bool kept(const std::string& name) {{
  const char* names = std::getenv("{VARIABLE}");
  return !names || (" " + std::string(names) + " ").find(" " + name + " ") == std::string::npos;
}}
}}
"""

# The purpose of each operator, in a few words.
DESCRIPTIONS = {
    "empty.memory_format": "an uninitialized dense tensor",
    "empty_strided": "an uninitialized tensor with given strides",
    "resize_": "a different size, with more memory if needed",
    "set_.source_Storage_storage_offset": "a new storage, size, strides and offset",
    "set_.source_Storage": "a new storage, as a one-dimensional tensor",
    "set_.source_Tensor": "the storage and size of another tensor",
    "fill_.Scalar": "sets all elements to one value",
    "zero_": "sets all elements to zero",
    "_local_scalar_dense": "the value of a one-element tensor, on the host",
    "record_stream": "marks the memory as used by another stream",
    "as_strided": "a view with given size, strides and offset",
    "view": "a view with a different shape",
    "_reshape_alias": "the view that `reshape` makes of a tensor with gaps",
    "unfold": "a view of sliding windows",
    "view_as_real": "a view of complex numbers as pairs",
    "view_as_complex": "a view of pairs as complex numbers",
    "_copy_from": "copies any dtype and strides, also between host and device",
    "_copy_from_and_resize": "copies into a tensor that it resizes first",
    "_has_compatible_shallow_copy_type": "whether `x.data = y` may replace the data",
    "native_batch_norm": "batch normalization, with its running statistics",
    "_thnn_fused_lstm_cell": "one step of an LSTM layer, or the cell",
    "_thnn_fused_gru_cell": "one step of a GRU layer, or the cell",
    "convolution_overrideable": "convolution",
    "convolution_backward_overrideable": "the derivative of convolution",
    "add.out": "the sum, which `add` and `add_` call",
    "abs.out": "the absolute value, which calls `abs_stub`",
    "native_dropout": "dropout that draws from the device generator",
}

Failures = dict[str, str | None]


def programs() -> dict[str, Callable[[], object]]:
    """Returns the programs by name, as functions without arguments.

    The programs need only operators that the skeleton registers.
    """
    import torch

    def device(*numbers: float) -> torch.Tensor:
        return torch.tensor(numbers, dtype=torch.float32).to("minimal")

    def saved() -> None:
        file = io.BytesIO()
        torch.save(device(1, 2), file)
        file.seek(0)
        assert torch.load(file).tolist() == [1, 2]

    def differentiate() -> None:
        x = device(1, 2).requires_grad_()
        torch.autograd.backward(x + x, device(3, 4))
        assert x.grad is not None
        assert x.grad.tolist() == [6, 8]

    def accumulate() -> None:
        x = device(1, 2).requires_grad_()
        for _ in range(2):
            torch.autograd.backward(x + x, device(1, 1))
        assert x.grad is not None
        assert x.grad.tolist() == [4, 4]

    def convolve() -> None:
        layer = torch.nn.Conv1d(1, 1, 2).to("minimal")
        made = layer(device(1, 2, 3).view(1, 1, 3))
        assert made.shape == (1, 1, 2)

    def convolve_back() -> None:
        layer = torch.nn.Conv1d(1, 1, 2).to("minimal")
        x = device(1, 2, 3).view(1, 1, 3).requires_grad_()
        torch.autograd.backward(layer(x), device(1, 1).view(1, 1, 2))
        assert x.grad is not None

    def write_to_view() -> None:
        x = device(1, 2, 3, 4)
        x.view(2, 2)[1].fill_(7)
        assert x.tolist() == [1, 2, 7, 7]

    def windows() -> None:
        x = device(1, 2, 3)
        x.unfold(0, 2, 1)[0].fill_(7)
        assert x.tolist() == [7, 7, 3]

    def parts() -> None:
        x = torch.complex(torch.ones(2), torch.ones(2)).to("minimal")
        torch.view_as_real(x)[:, 0].fill_(7)
        assert x.tolist() == [7 + 1j, 7 + 1j]

    def join() -> None:
        made = torch.view_as_complex(device(1, 2).view(1, 2))
        assert made.tolist() == [1 + 2j]

    def share() -> None:
        x = device(1, 2)
        y = torch.empty(0, device="minimal").set_(x.untyped_storage())
        assert y.tolist() == [1, 2]

    def borrow() -> None:
        x, y = device(1, 2), torch.empty(0, device="minimal")
        y.set_(x)  # type: ignore[call-overload]
        assert y.tolist() == [1, 2]

    def grow() -> None:
        out = torch.empty(0, device="minimal")
        torch.add(device(1, 2), device(3, 4), out=out)
        assert out.tolist() == [4, 6]

    def move() -> None:
        layer = torch.nn.Linear(2, 2)
        weight = layer.weight
        assert layer.to("minimal").weight.device.type == "minimal"
        assert layer.weight is weight, "the parameter was replaced"

    def record() -> None:
        device(1).record_stream(torch.Stream("minimal"))

    def reshape() -> None:
        column = device(*range(8)).view(4, 2)[:, 0]
        assert column.reshape(2, 2).tolist() == [[0, 2], [4, 6]]

    def write_back() -> None:
        host = torch.empty(0)
        torch._copy_from_and_resize(device(1, 2), host)
        assert host.tolist() == [1, 2]

    def normalize() -> None:
        layer = torch.nn.BatchNorm1d(2).to("minimal")
        layer(device(1, 2, 3, 4).view(2, 2))
        assert layer.running_mean is not None
        assert layer.running_mean.count_nonzero() == 2, "the statistics are not updated"

    def recur(kind: Callable[[int, int], torch.nn.RNNBase]) -> None:
        layer = kind(1, 1).to("minimal")
        made, _ = layer(device(1, 2).view(2, 1))
        assert made.shape == (2, 1)

    def drop() -> None:
        made = []
        for _ in range(2):
            torch.minimal.manual_seed_all(0)  # type: ignore[attr-defined]
            made.append(torch.nn.functional.dropout(device(*range(100)), 0.5))
        assert torch.equal(*made), "the seed of the device has no effect"

    return {
        "`torch.empty`": lambda: torch.empty(2, device="minimal"),
        "`torch.empty_strided`": lambda: torch.empty_strided(
            (2,), (2,), device="minimal"
        ),
        "`torch.zeros`": lambda: torch.zeros(2, device="minimal"),
        "`torch.full`": lambda: torch.full((2,), 3.0, device="minimal"),
        "copy from the host": lambda: torch.ones(2).to("minimal"),
        "copy to the host": lambda: torch.empty(2, device="minimal").cpu(),
        "convert the dtype": lambda: device(1, 2).to(torch.int64),
        "`clone`": lambda: device(1, 2).clone(),
        "`contiguous`": lambda: device(1, 2, 3, 4).view(2, 2).t().contiguous(),
        "`deepcopy`": lambda: copy.deepcopy(device(1, 2)),
        "`item`": lambda: device(1).item(),
        "`tolist`": lambda: device(1, 2).tolist(),
        "index and slice": lambda: device(1, 2, 3)[1:].cpu(),
        "transpose": lambda: device(1, 2).view(1, 2).t(),
        "`view`": write_to_view,
        "`reshape`": reshape,
        "`flatten`": lambda: device(1, 2).view(1, 2).t().flatten(),
        "`unfold`": windows,
        "`view_as_real`": parts,
        "`view_as_complex`": join,
        "`resize_`": lambda: device(1, 2).resize_(100),
        "`out=` that grows": grow,
        "`set_` to a storage": share,
        "`set_` to a tensor": borrow,
        "add": lambda: device(1, 2) + device(3, 4),
        "add in place": lambda: device(1, 2).add_(device(3, 4)),
        "`abs`": lambda: device(-1, 2).abs(),
        "`backward`": differentiate,
        "accumulate gradients": accumulate,
        "move a module": move,
        "convolution": convolve,
        "convolution, backward": convolve_back,
        "`torch.save` and `torch.load`": saved,
        "`record_stream`": record,
        "write changed arguments back": write_back,
        "batch normalization": normalize,
        "LSTM": lambda: recur(torch.nn.LSTM),
        "GRU": lambda: recur(torch.nn.GRU),
        "dropout": drop,
    }


def registered(text: str) -> list[str]:
    """Lists the operators that a source file registers for the device by hand."""
    blocks = re.findall(
        r"^TORCH_LIBRARY_IMPL\(aten, PrivateUse1, m\) \{.*?^\}|"
        r"^TORCH_LIBRARY_IMPL\(aten, PrivateUse1, m\) \{.*?\}$",
        text,
        re.MULTILINE | re.DOTALL,
    )
    return [
        name for block in blocks for name in re.findall(r'm\.impl\("(\S+?)"', block)
    ]


def operators() -> list[str]:
    """Lists the operators that the skeleton registers by hand, file by file."""
    files = ("operators", "copy", "kernels", "fallback", "generator")
    sources = sorted(path.stem for path in (SKELETON / "csrc").glob("*.cpp"))
    order = [*files, *(name for name in sources if name not in files)]
    texts = ((SKELETON / "csrc" / f"{name}.cpp").read_text("utf-8") for name in order)
    return [name for text in texts for name in registered(text)]


def selectable(text: str) -> str:
    """Returns a source file in which each registration depends on the variable."""

    def patch(block: re.Match[str]) -> str:
        conditional = re.sub(
            r'm\.impl\("(\S+?)"', r'if (kept("\1")) m.impl("\1"', block[0]
        )
        return conditional.replace("m.fallback", f'if (kept("{FALLBACK}")) m.fallback')

    pattern = (
        r"TORCH_LIBRARY_IMPL\((?:aten|_), (?:Autograd)?PrivateUse1, m\) "
        r"\{.*?(?:^| )\}$"
    )
    return re.sub(pattern, patch, text, flags=re.MULTILINE | re.DOTALL)


def load(path: Path) -> ModuleType:
    """Loads a Python file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build() -> None:
    """Builds the skeleton with registrations that can be left out."""
    shutil.rmtree(TREE, ignore_errors=True)
    load(SKELETON / "rename.py").write("minimal", TREE)
    header = TREE / "csrc" / "runtime.h"
    header.write_text(header.read_text("utf-8") + KEPT, "utf-8")
    for path in (TREE / "csrc").glob("*.cpp"):
        text = selectable(path.read_text("utf-8"))
        if "kept(" in text and '"runtime.h"' not in text:
            text = f'#include "runtime.h"\n{text}'
        path.write_text(text, "utf-8")
    binaries = WORK / "build"
    configure = [
        *("cmake", "-S", str(TREE), "-B", str(binaries), "-G", "Ninja"),
        *("-DCMAKE_BUILD_TYPE=Release", "-DSKBUILD_PROJECT_VERSION=0.1.0"),
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dopenreg_ROOT={libopenreg.find('include').parent}",
    ]
    for command in (configure, ["cmake", "--build", str(binaries)]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    library = binaries / "libtorch_minimal.so"
    shutil.copy(library, TREE / "src" / "torch_minimal" / library.name)


def in_child(function: Callable[[], str]) -> str:
    """Returns what a function returns in a forked process, or its signal's name."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            pipe.write(function())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return text if status >= 0 else signal.strsignal(-status) or f"signal {-status}"


def failure(program: Callable[[], object]) -> str:
    """Runs a program; returns its exception in a line, or nothing."""
    try:
        program()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return ""


def run_all(left_out: str) -> str:
    """Runs each program in a separate process; returns the failures as JSON."""
    os.environ[VARIABLE] = left_out
    importlib.import_module("torch_minimal")  # loads the device; PYTHONPATH has it

    found = {}
    for name, program in programs().items():
        found[name] = in_child(functools.partial(failure, program)) or None
    return json.dumps(found)


def run_each(sets: list[str]) -> None:
    """Prints the failures without each set of registrations, as a list in JSON."""
    import torch  # noqa: F401  (once for all processes)

    found = [in_child(functools.partial(run_all, each)) for each in sets]
    print(json.dumps([json.loads(each) for each in found]))


def environment() -> dict[str, str]:
    """Returns the environment variables of a process that imports the built skeleton."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(TREE / "src"), *sys.path]),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    }


def failures_without(sets: list[str]) -> list[Failures]:
    """Runs the programs without each set of registrations (names with spaces)."""
    command = [sys.executable, "-W", "ignore", __file__, "--run", json.dumps(sets)]
    ran = subprocess.run(
        command, env=environment(), stdout=subprocess.PIPE, check=True, text=True
    )
    result: list[Failures] = json.loads(ran.stdout)
    return result


CORE = """
import json, torch
key, dispatch = {key!r}, torch._C._dispatch_has_kernel_for_dispatch_key
composite = ("CompositeImplicitAutograd", "CompositeExplicitAutograd",
             "CompositeExplicitAutogradNonFunctional")
counts = dict(own=0, composite=0, fallback=0, none=[])
for name in torch._C._dispatch_get_all_op_names():
    if not name.startswith("aten::"):
        continue
    base, _, overload = name.removeprefix("aten::").partition(".")
    packet = getattr(torch.ops.aten, base, None)
    operator = packet and getattr(packet, overload or "default", None)
    if operator is None or torch.Tag.core not in operator.tags:
        continue
    if dispatch(name, key):
        counts["own"] += 1
    elif any(dispatch(name, each) for each in composite):
        counts["composite"] += 1
    elif key != "CPU" and dispatch(name, "CPU"):
        counts["fallback"] += 1
    else:
        counts["none"].append(name.removeprefix("aten::"))
print(json.dumps(counts))
"""


def core_counts(package: str, key: str) -> dict[str, int | list[str]]:
    """Counts the core operators of ATen by the kernel that runs on a device.

    Args:
        package: The package to import for the device; ``torch`` for the CPU.
        key: Its dispatch key.
    """
    program = f"import {package}\n{CORE.format(key=key)}"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    counts: dict[str, int | list[str]] = json.loads(ran.stdout)
    return counts


# ruff: noqa: E501 - lines of a page
TEXT = """\
# The minimal operator set

This page lists the operators that a backend must register itself before composite kernels and a fallback can serve the
rest. Use it to plan the first kernels of a new backend. `tools/operator_set.py` generates the page. It runs {count} small
programs on the [skeleton](bring_up.md), then runs them again with each registration removed in turn.

The column "fails" lists the programs that fail without the operator on a skeleton without a fallback. The column
"error" has the error of the first of these programs. The last column lists the programs that fail on a skeleton with a
fallback.

| operator | purpose | dispatch key | fails | error | fails with the fallback |
| --- | --- | --- | --- | --- | --- |
{rows}

## Operators that a fallback serves incorrectly

A fallback also runs these operators, but returns wrong results or raises an error of the CPU. The backend therefore
needs kernels for them. The kernels call the fallback, so the programs run on a skeleton that has one.

| operator | purpose | dispatch key | fails | error |
| --- | --- | --- | --- | --- |
{misserved}

## Schemas

```text
{schemas}
```

## The core operators of ATen

PyTorch marks {core} operators with `torch.Tag.core`. `torch.export` decomposes programs into these operators. The table
counts them by the kernel that runs on each device:

- *own*: a kernel that is registered for the dispatch key of the device;
- *composite*: a kernel that calls other operators, which on the skeleton end in the fallback;
- *fallback*: a CPU kernel that the fallback of the device calls.

A kernel need not accept every combination of arguments.

| device | own | composite | fallback | none |
| --- | --- | --- | --- | --- |
{core_rows}
"""


def shortened(error: str) -> str:
    """Returns an error for a table cell, without the text that PyTorch always appends."""
    text = re.split(r"(?<=backend)\. | This could be because", error)[0]
    return text.strip().replace("|", "\\|")


def schema_of(name: str) -> str:
    """Returns the schema of an ATen operator by name and overload."""
    import torch

    base, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, base)
    return str(getattr(packet, overload or "default")._schema)


def stopped(failures: Failures, always: Failures) -> dict[str, str]:
    """Returns the failures of programs that run if all operators are registered."""
    return {k: v for k, v in failures.items() if v and not always[k]}


def row(name: str, found: Mapping[str, str]) -> str:
    """Returns the row of an operator, with the programs that fail without it."""
    error = f"`{shortened(next(iter(found.values())))}`" if found else ""
    stops = ", ".join(found) or "nothing"
    return f"| `{name}` | {DESCRIPTIONS[name]} | `PrivateUse1` | {stops} | {error} |"


def still_stopped(found: Mapping[str, str], still: Mapping[str, str]) -> str:
    """Lists the programs that fail with the fallback too, relative to ``found``."""
    if found and found.keys() <= still.keys():
        more = [name for name in still if name not in found]
        return ", and ".join(["the same", *([", ".join(more)] if more else [])])
    return ", ".join(still) or "nothing"


def core_row(where: str, counts: Mapping[str, int | list[str]]) -> str:
    """Returns the row of a device in the table of the core set."""
    missing = counts["none"]
    assert isinstance(missing, list)
    names = ": " + ", ".join(f"`{name}`" for name in missing) if missing else ""
    served = " | ".join(str(counts[kind]) for kind in ("own", "composite", "fallback"))
    return f"| {where} | {served} | {len(missing)}{names} |"


def page() -> str:
    """Returns the whole page.

    Raises:
        ValueError: If an operator has no description, or a description no operator, or
            a program fails on the complete skeleton.
    """
    names = operators()
    if set(names) != set(DESCRIPTIONS):
        wrong = sorted(set(names) ^ set(DESCRIPTIONS))
        raise ValueError(f"DESCRIPTIONS and the skeleton differ in {', '.join(wrong)}")
    build()
    sets = [FALLBACK, "", *(f"{FALLBACK} {name}" for name in names), *names]
    alone, complete, *each = failures_without(sets)
    if failed := {k: v for k, v in complete.items() if v}:
        raise ValueError(f"programs fail on the complete skeleton: {failed}")
    without = dict(zip(names, each[: len(names)], strict=True))
    served = dict(zip(names, each[len(names) :], strict=True))
    rows = []
    misserved = []
    for name in names:
        found = stopped(without[name], alone)
        still = stopped(served[name], complete)
        if found:
            rows.append(f"{row(name, found)} {still_stopped(found, still)} |")
        else:
            misserved.append(row(name, still))
    counts = {
        "`minimal`, the skeleton": core_counts("torch_minimal", "PrivateUse1"),
        "`openreg`": core_counts("torch_openreg", "PrivateUse1"),
        "the CPU": core_counts("torch", "CPU"),
    }
    return TEXT.format(
        count=len(complete),
        rows="\n".join(rows),
        misserved="\n".join(misserved),
        schemas="\n".join(schema_of(name) for name in names),
        core=sum(
            len(count) if isinstance(count, list) else count
            for count in counts["the CPU"].values()
        ),
        core_rows="\n".join(core_row(*each) for each in counts.items()),
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run_each(json.loads(sys.argv[2]))
    else:
        sys.exit(main("Write the page of the minimal operator set.", PAGE, page))
