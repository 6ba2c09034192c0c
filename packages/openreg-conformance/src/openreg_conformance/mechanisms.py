# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a backend, to which failures are assigned, and their users.

The share of users is an estimate for ordering, not a measurement: without tensor
creation no program runs, without a profiler all do. The shares of operators are counted
instead: see ``usage.py``.
"""

from __future__ import annotations

import dataclasses

# Depths: a mechanism does not work without the mechanisms below it.
FOUNDATION, DEVICE, OPERATORS, PROGRAMS = range(4)


@dataclasses.dataclass(frozen=True)
class Mechanism:
    """A part of a backend.

    Attributes:
        title: The part, in PyTorch's terms.
        page: The page in the guide of torch-openreg.
        users: The share of programs that need it, from 0 to 1.
        depth: The level it depends on: one of the constants above.
    """

    title: str
    page: str
    users: float
    depth: int = DEVICE


def _page(name: str) -> str:
    return f"docs/mechanisms/{name}.md"


MECHANISMS = {
    "name": Mechanism("the device name", _page("rename"), 1.0, FOUNDATION),
    "factory": Mechanism(
        "aten::empty.memory_format and empty_strided", _page("factory"), 1.0, FOUNDATION
    ),
    "copy": Mechanism("aten::_copy_from", _page("copy"), 1.0, FOUNDATION),
    "guard": Mechanism("DeviceGuardImplInterface", _page("guard"), 0.9),
    "hooks": Mechanism("PrivateUse1HooksInterface", _page("hooks"), 0.9),
    "device_module": Mechanism(
        "the device's module in torch", _page("device_module"), 0.9
    ),
    "allocator": Mechanism("c10::Allocator, DeviceAllocator", _page("allocator"), 0.8),
    "statistics": Mechanism(
        "memory statistics of DeviceAllocator", _page("allocator"), 0.3
    ),
    "storage": Mechanism("storages: set_, resize_, nbytes", _page("storage"), 0.6),
    "view": Mechanism("views and strides", _page("view"), 0.95),
    "streams": Mechanism("streams, by the guard", _page("guard"), 0.5),
    "events": Mechanism("events, by the guard", _page("guard"), 0.5),
    "record_stream": Mechanism("Tensor.record_stream", _page("allocator"), 0.3),
    "host_allocator": Mechanism("pinned memory", _page("host_allocator"), 0.5),
    "generator": Mechanism("c10::GeneratorImpl", _page("generator"), 0.8),
    "methods": Mechanism("methods such as Tensor.DEVICE()", _page("methods"), 0.3),
    "operators": Mechanism("operators: values", "docs/operators.md", 0.9, OPERATORS),
    "gradients": Mechanism(
        "operators: gradients", "docs/registering.md", 0.9, OPERATORS
    ),
    "in_place": Mechanism(
        "operators: in-place variants", "docs/operators.md", 0.6, OPERATORS
    ),
    "out": Mechanism("operators: out= variants", "docs/operators.md", 0.3, OPERATORS),
    "sparse": Mechanism("sparse tensors", _page("sparse"), 0.05, OPERATORS),
    "forward_ad": Mechanism(
        "operators: forward AD", "docs/registering.md", 0.1, OPERATORS
    ),
    "versions": Mechanism(
        "operators: version counters, key ADInplaceOrView",
        "docs/registering.md",
        0.4,
        OPERATORS,
    ),
    "fake": Mechanism("operators: fake tensors", _page("fake_tensor"), 0.3, OPERATORS),
    "errors": Mechanism(
        "operators: refused arguments", "docs/operators.md", 0.4, OPERATORS
    ),
    "semantics": Mechanism(
        "autograd, hooks and subclasses", "docs/registering.md", 0.5, OPERATORS
    ),
    "modules": Mechanism("torch.nn modules", "docs/operators.md", 0.8, PROGRAMS),
    "optimizers": Mechanism("torch.optim", "docs/operators.md", 0.8, PROGRAMS),
    "autocast": Mechanism("torch.autocast", _page("autocast"), 0.6, PROGRAMS),
    "serialization": Mechanism(
        "torch.save and torch.load", _page("storage"), 0.7, PROGRAMS
    ),
    "multiprocessing": Mechanism(
        "torch.multiprocessing", _page("multiprocessing"), 0.2, PROGRAMS
    ),
    "data_loading": Mechanism(
        "torch.utils.data", _page("host_allocator"), 0.5, PROGRAMS
    ),
    "process_group": Mechanism(
        "torch.distributed", _page("process_group"), 0.3, PROGRAMS
    ),
    "dynamo": Mechanism(
        "torch.compile, device interface", _page("device_interface"), 0.3, PROGRAMS
    ),
    "inductor": Mechanism(
        "torch.compile, Inductor's backend", _page("inductor"), 0.3, PROGRAMS
    ),
    "profiler": Mechanism("torch.profiler", _page("profiler_stubs"), 0.2, PROGRAMS),
    "exit": Mechanism("the end of a process", "docs/isolation.md", 0.6),
}
