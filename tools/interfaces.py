# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/interfaces.md: every method of the classes that a backend derives from.

Methods, defaults and noexcept come from the headers of the installed torch. The purpose
of each method and its rules for threads are in this file:

    python tools/interfaces.py          # write the page
    python tools/interfaces.py --check  # fail if the page is not current for this torch

A method without an entry is an error, and so is an entry without a method.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import torch
from headers import closing, virtual_methods
from pages import main

PAGE = Path(__file__).parents[1] / "docs" / "interfaces.md"
SOURCES = Path(__file__).parents[1] / "packages" / "openreg-aten" / "csrc"
INCLUDE = Path(torch.__file__).parent / "include"

# ruff: noqa: E501 - lines of a page
TEXT = """\
# The classes to derive from

This page lists every virtual method of the four classes that a backend implements: the [guard](mechanisms/guard.md),
the [hooks](mechanisms/hooks.md), the [allocator](mechanisms/allocator.md) and one [generator](mechanisms/generator.md)
per device. Use it to find out which methods your backend needs, and which threads and locks to expect.
`tools/interfaces.py` generates the page from the headers of torch {version}, and fails if a method is missing or no longer
exists.

- **needed**: the class does not compile without a "pure virtual" method. An "optional" method has a default.
- **for**: the functions that call the method, and fail or change their result without it.
- **default**: the behavior of the base class. An error is shown with its message. "PyTorch's" is an implementation in
  PyTorch's library.
- **noexcept**: an exception that leaves the method terminates the process.
- **here**: whether torch-openreg overrides the method.

Any thread can call any method: autograd has a thread per device, and other libraries have their own threads. The
objects must stay valid until the process ends, so do not delete them.
{parts}
## Rules for all classes

- The interface does not define whether the caller holds the GIL. PyTorch's bindings release it for every operator, and
  where the tables say "releases the GIL". They hold it in all other methods that Python calls directly: the methods of
  `torch.Stream`, `torch.Event` and `torch.Generator`, statistics, and `empty_cache`.
- A method that waits for the device must release the GIL if the caller holds it. Otherwise, enqueued work that needs
  the GIL, such as a Python callback, deadlocks. In torch-openreg, `GilRelease` in `device/gil.h` releases it while
  `item()`, an allocation that is short of memory, or a storage copy waits.
- The deleter of a block runs wherever the last reference is dropped: in the garbage collector with the GIL, on an
  autograd thread without it, or after the interpreter has finalized. It must not take the GIL and must not throw.
"""


class Interface(NamedTuple):
    """A class that a backend derives from.

    Attributes:
        title: The heading.
        bases: The class and its bases: header and name, the most derived one first.
        ours: The file and the classes in this project.
        about: A sentence below the heading.
        notes: For each method, its purpose and its rules for threads.
    """

    title: str
    bases: tuple[tuple[str, str], ...]
    ours: tuple[str, ...]
    about: str
    notes: dict[str, tuple[str, str]]


class Method(NamedTuple):
    """A virtual method of a header.

    Attributes:
        name: The name.
        pure: Whether the method is pure virtual.
        default: The behavior of the body, in Markdown; empty for a pure virtual method.
        noexcept: Whether it must not throw.
    """

    name: str
    pure: bool
    default: str
    noexcept: bool


INTERFACES = (
    Interface(
        "Guard",
        (
            (
                "c10/core/impl/DeviceGuardImplInterface.h",
                "DeviceGuardImplInterface",
            ),
        ),
        ("extension/guard.cpp", "Guard"),
        "`c10::impl::DeviceGuardImplInterface`, registered with `C10_REGISTER_GUARD_IMPL`. All methods are const: keep the current device and the current streams in thread-local variables, outside the object.",
        {
            "type": ("always", ""),
            "exchangeDevice": ("always", "changes the current device of the thread"),
            "getDevice": ("always", ""),
            "setDevice": ("always", "changes the current device of the thread"),
            "uncheckedSetDevice": (
                "always",
                "runs in destructors; report errors as warnings",
            ),
            "getStream": ("always", "returns the current stream of the thread"),
            "getDefaultStream": ("a `torch.Stream` for the default stream", ""),
            "getStreamFromGlobalPool": ("C++ code that takes streams from a pool", ""),
            "getNewStream": ("`torch.Stream(device)`", ""),
            "exchangeStream": (
                "always",
                "changes the current stream of the thread",
            ),
            "getStreamNativeHandle": ("`Stream.native_handle`", ""),
            "destroyEvent": (
                "events, which leak without it",
                "runs in destructors and must not block; `torch.Event` releases the GIL first",
            ),
            "record": (
                "`torch.Event`, backward over several streams",
                "must not block: the caller may hold the GIL",
            ),
            "block": (
                "`Event.wait`, backward over several streams",
                "must not block the host, only the stream: the caller may hold the GIL",
            ),
            "queryEvent": (
                "`Event.query`",
                "must not block: the caller may hold the GIL",
            ),
            "deviceCount": (
                "always",
                "returns 0 if the driver fails",
            ),
            "getDeviceCapability": (
                "`torch.accelerator.get_device_capability`",
                "",
            ),
            "queryStream": (
                "`Stream.query`",
                "must not block: the caller may hold the GIL",
            ),
            "synchronizeStream": (
                "`Stream.synchronize`",
                "blocks; `torch.Stream` releases the GIL first",
            ),
            "isStreamCapturing": (
                "`Stream.is_capturing`",
                "must not invalidate the capture",
            ),
            "synchronizeEvent": (
                "`Event.synchronize`",
                "blocks; `torch.Event` releases the GIL first",
            ),
            "synchronizeDevice": (
                "`torch.accelerator.synchronize`",
                "blocks; `torch.accelerator` releases the GIL first",
            ),
            "recordDataPtrOnStream": (
                "memory that backward uses on another stream",
                "takes the allocator's lock",
            ),
            "elapsedTime": (
                "`Event.elapsed_time`",
                "does not block: both events are complete",
            ),
        },
    ),
    Interface(
        "Hooks",
        (
            (
                "ATen/detail/PrivateUse1HooksInterface.h",
                "PrivateUse1HooksInterface",
            ),
            (
                "ATen/detail/AcceleratorHooksInterface.h",
                "AcceleratorHooksInterface",
            ),
        ),
        ("extension/hooks.cpp", "Hooks", "PrivateUse1Hooks"),
        "`at::PrivateUse1HooksInterface`, derived from `at::AcceleratorHooksInterface` and registered with `at::RegisterPrivateUse1HooksInterface`.",
        {
            "isBuilt": ("`torch.accelerator`", "must not throw"),
            "isAvailable": (
                "`torch.accelerator`",
                "must not throw, and must not start the driver",
            ),
            "hasPrimaryContext": ("backward", "must not start the driver"),
            "init": (
                "lazy initialization",
                "called once, from any thread; called again after an exception",
            ),
            "deviceCount": ("`torch.accelerator`, backward", ""),
            "setCurrentDevice": ("`torch.accelerator.set_device_index`", ""),
            "getCurrentDevice": ("`torch.accelerator`, pinned memory", ""),
            "exchangeDevice": ("`torch.accelerator.device_index`", ""),
            "maybeExchangeDevice": ("`torch.accelerator.device_index`", ""),
            "isPinnedPtr": (
                "`Tensor.is_pinned`, asynchronous copies",
                "called with any host address, including in a forked process",
            ),
            "getPinnedMemoryAllocator": ("`Tensor.pin_memory`", ""),
            "getDeviceFromPtr": (
                "`at::from_blob`, DLPack",
                "the caller may hold the GIL; must not take it",
            ),
            "getDefaultGenerator": (
                "random numbers",
                "returns a reference that stays valid",
            ),
            "getNewGenerator": ("`torch.Generator(device)`", ""),
            "resizePrivateUse1Bytes": ("`UntypedStorage.resize_`", ""),
        },
    ),
    Interface(
        "Allocator",
        (
            ("c10/core/CachingDeviceAllocator.h", "DeviceAllocator"),
            ("c10/core/Allocator.h", "Allocator"),
        ),
        ("memory/allocator.cpp", "Allocator"),
        "`c10::DeviceAllocator`, derived from `c10::Allocator` and registered with `c10::SetAllocator`. A class that derives from `c10::Allocator` alone also works, without statistics and without `empty_cache`.",
        {
            "initialized": ("`torch.accelerator.memory`", ""),
            "emptyCache": (
                "`torch.accelerator.empty_cache`",
                "takes the allocator's lock; may block, and `torch.accelerator` holds the GIL",
            ),
            "recordStream": ("`Tensor.record_stream`", "takes the allocator's lock"),
            "getDeviceStats": (
                "`torch.accelerator.memory_stats`",
                "takes the allocator's lock",
            ),
            "resetAccumulatedStats": (
                "`reset_accumulated_memory_stats`",
                "takes the allocator's lock",
            ),
            "resetPeakStats": (
                "`reset_peak_memory_stats`",
                "takes the allocator's lock",
            ),
            "getMemoryInfo": (
                "`torch.accelerator.get_memory_info`",
                "`torch.accelerator` releases the GIL first",
            ),
            "allocate": (
                "always",
                "takes the allocator's lock; must release the GIL while it waits for memory",
            ),
            "is_simple_data_ptr": ("copy-on-write", ""),
            "raw_deleter": (
                "`raw_allocate`, copy-on-write",
                "must return the same function on every call",
            ),
            "copy_data": (
                "copy-on-write, `UntypedStorage.clone`",
                "must release the GIL while it waits",
            ),
        },
    ),
    Interface(
        "Generator",
        (("c10/core/GeneratorImpl.h", "GeneratorImpl"),),
        ("random/generator.cpp", "GeneratorImpl"),
        "`c10::GeneratorImpl`, created by the hooks. PyTorch requires the caller of a method to hold the generator's `mutex_`, so a method must not lock it again. Methods that only read are exempt, and Python calls two of them without the lock.",
        {
            "set_current_seed": ("`torch.manual_seed`", "the caller holds `mutex_`"),
            "set_offset": ("`Generator.set_offset`", "the caller holds `mutex_`"),
            "get_offset": (
                "`Generator.get_offset`, pickling",
                "Python calls it without `mutex_`",
            ),
            "current_seed": (
                "`Generator.initial_seed`, pickling",
                "Python calls it without `mutex_`",
            ),
            "seed": ("`torch.seed`", "the caller holds `mutex_`"),
            "set_state": ("`Generator.set_state`", "the caller holds `mutex_`"),
            "get_state": ("`Generator.get_state`", "the caller holds `mutex_`"),
            "graphsafe_set_state": (
                "compiled checkpoints",
                "the caller holds `mutex_`",
            ),
            "graphsafe_get_state": (
                "compiled checkpoints",
                "the caller holds `mutex_`",
            ),
            "clone_impl": ("`Generator.clone_state`", "the caller holds `mutex_`"),
        },
    ),
)

_MESSAGE = re.compile(r'TORCH_CHECK\w*\(\s*false,\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', re.S)


def describe(body: str) -> str:
    """Describes in Markdown the body of a default implementation."""
    if found := _MESSAGE.search(body):
        message = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found[1]))
        return f"error: {message}"
    if "FAIL_PRIVATEUSE1HOOKS_FUNC" in body:
        old = (
            "calls the older generator registration, or " if "Generator" in body else ""
        )
        return f"{old}error: You should register PrivateUse1HooksInterface"
    if found := re.fullmatch(r"\s*return ([\w:]+);\s*", body):
        return f"returns `{found[1]}`"
    return "does nothing" if not body.strip() else "PyTorch's"


def methods(header: str, name: str) -> dict[str, Method]:
    """Reads the virtual methods that a class declares or overrides.

    Args:
        header: The path below torch's ``include``.
        name: The class.

    Raises:
        ValueError: If the header has no class of this name.
    """
    text = (INCLUDE / header).read_text(encoding="utf-8")
    found = {}
    for each in virtual_methods(text, name):
        default = "" if each.pure else "PyTorch's"  # defined in a library
        if each.body is not None:
            default = describe(each.body)
        found[each.name] = Method(each.name, each.pure, default, each.noexcept)
    return found


def merged(interface: Interface) -> dict[str, Method]:
    """Returns the methods of a class and its bases, with the most derived default."""
    found: dict[str, Method] = {}
    for header, name in interface.bases:
        for method in methods(header, name).values():
            found.setdefault(method.name, method)
    return found


def overridden(interface: Interface) -> set[str]:
    """Returns the names of the methods that this project overrides."""
    file, *names = interface.ours
    text = (SOURCES / file).read_text(encoding="utf-8")
    found: set[str] = set()
    for name in names:
        brace = re.search(rf"class {name}\b[^;{{]*{{", text).end() - 1  # type: ignore[union-attr]
        found |= set(
            re.findall(
                r"\b(\w+)\((?:[^()]|\([^()]*\))*\)[\w\s]*?\boverride\b",
                text[brace : closing(text, brace)],
            )
        )
    return found


def part(interface: Interface) -> str:
    """Returns the page's section for a class.

    Raises:
        ValueError: If the names in the headers and in the entries differ.
    """
    found = merged(interface)
    if found.keys() != interface.notes.keys():
        names = ", ".join(sorted(found.keys() ^ interface.notes.keys()))
        raise ValueError(f"{interface.title}: the headers or this tool lack {names}")
    ours = overridden(interface)
    lines = [
        f"\n## {interface.title}\n",
        textwrap.fill(interface.about, 120) + "\n",
        "| method | needed | for | default | noexcept | threads and locks | here |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for method in found.values():
        purpose, threads = interface.notes[method.name]
        needed = "pure virtual" if method.pure else "optional"
        cells = (
            f"`{method.name}`",
            needed,
            "every program" if purpose == "always" else purpose,
            method.default,
            "yes" if method.noexcept else "",
            threads,
            "yes" if method.name in ours else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Returns the whole page."""
    version = torch.__version__.split("+")[0]
    return TEXT.format(version=version, parts="".join(map(part, INTERFACES)))


if __name__ == "__main__":
    sys.exit(main((__doc__ or "").splitlines()[0], PAGE, page))
