# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/interfaces.md: every method of the classes that a backend derives from.

Methods, defaults and noexcept come from the headers of the torch that is installed; what
needs a method, and what holds for threads, stands here:

    python tools/interfaces.py          # write the page
    python tools/interfaces.py --check  # fail if the page is not that of this torch

A method that has no entry here is an error, and so is an entry without a method.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

import torch
from pages import main

PAGE = Path(__file__).parents[1] / "docs" / "interfaces.md"
SOURCES = Path(__file__).parents[1] / "packages" / "openreg-aten" / "csrc"
INCLUDE = Path(torch.__file__).parent / "include"

# ruff: noqa: E501 - lines of a page
TEXT = """\
# The classes to derive from

A backend gives PyTorch objects of four classes: a [guard](mechanisms/guard.md), [hooks](mechanisms/hooks.md), an
[allocator](mechanisms/allocator.md) and a [generator](mechanisms/generator.md) for each device. These are all their
virtual methods in torch {version}. `tools/interfaces.py` reads them in the headers of the wheel and writes this page; it
fails if the headers have a method more or less.

- **needed**: "pure virtual" methods must be there for the class to compile. "always" stands for methods without which
  an ordinary program fails, although the class compiles. For all others the cell says what fails.
- **default**: what the base class does. An error is shown by its text.
- **noexcept**: an exception that leaves such a method ends the process.
- **here**: whether this project overrides it.

All methods can be called from any thread: autograd has a thread for each device, and other libraries have their own.
The objects must live until the process ends, so they are never deleted.
{parts}
## What holds for all of them

- Whether the caller has Python's lock, the GIL, is not said by the interface. PyTorch's bindings give it up for every
  operator, and where the tables say so. They keep it in all other methods that Python calls directly: those of
  `torch.Stream`, `torch.Event` and `torch.Generator`, statistics, and `empty_cache`.
- A method that waits for the device must not need the GIL, and must not keep it: work that needs the GIL, such as a
  callback in Python, would never end. Here `GilRelease` in `device/gil.h` gives it up while `item()`, an allocation
  that is short of memory and a copy of a storage wait.
- The deleter of a block runs wherever the last reference ends: in the garbage collector with the GIL, on a thread of
  autograd without it, and after the interpreter has ended. It must not take the GIL and must not throw.
"""


class Interface(NamedTuple):
    """A class that a backend derives from.

    Attributes:
        title: The heading.
        bases: The class and its bases: header and name, the most derived one first.
        ours: The file and the class of this project.
        about: A sentence below the heading.
        notes: For each method what it is needed for, and what holds for threads.
    """

    title: str
    bases: tuple[tuple[str, str], ...]
    ours: tuple[str, str]
    about: str
    notes: dict[str, tuple[str, str]]


class Method(NamedTuple):
    """A virtual method of a header.

    Attributes:
        name: Its name.
        pure: Whether it has no body.
        default: What the body does, in Markdown; empty for a pure one.
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
        "`c10::impl::DeviceGuardImplInterface`, registered by `C10_REGISTER_GUARD_IMPL`. Methods are const: state is elsewhere, the current device and streams in variables of the thread.",
        {
            "type": ("always", ""),
            "exchangeDevice": ("always", "changes the device of this thread"),
            "getDevice": ("always", ""),
            "setDevice": ("always", "changes the device of this thread"),
            "uncheckedSetDevice": (
                "always",
                "runs in destructors; report an error by a warning",
            ),
            "getStream": ("always", "the current stream of this thread"),
            "getDefaultStream": ("`torch.Stream` of the default stream", ""),
            "getStreamFromGlobalPool": ("C++ that takes streams from a pool", ""),
            "getNewStream": ("`torch.Stream(device)`", ""),
            "exchangeStream": (
                "always",
                "changes the current stream of this thread",
            ),
            "getStreamNativeHandle": ("`Stream.native_handle`", ""),
            "destroyEvent": (
                "events, which leak without it",
                "runs in destructors; must not wait. `torch.Event` gives up the GIL first",
            ),
            "record": (
                "`torch.Event`, backward over several streams",
                "must return at once, also with the GIL",
            ),
            "block": (
                "`Event.wait`, backward over several streams",
                "must return at once, also with the GIL: the stream waits, and not the host",
            ),
            "queryEvent": ("`Event.query`", "must return at once, also with the GIL"),
            "deviceCount": (
                "always",
                "0 if the driver fails",
            ),
            "getDeviceCapability": (
                "`torch.accelerator.get_device_capability`",
                "",
            ),
            "queryStream": ("`Stream.query`", "must return at once, also with the GIL"),
            "synchronizeStream": (
                "`Stream.synchronize`",
                "waits; `torch.Stream` gives up the GIL first",
            ),
            "isStreamCapturing": ("`Stream.is_capturing`", "must not fail the capture"),
            "synchronizeEvent": (
                "`Event.synchronize`",
                "waits; `torch.Event` gives up the GIL first",
            ),
            "synchronizeDevice": (
                "`torch.accelerator.synchronize`",
                "waits; `torch.accelerator` gives up the GIL first",
            ),
            "recordDataPtrOnStream": (
                "memory that backward uses on another stream",
                "takes the allocator's lock",
            ),
            "elapsedTime": (
                "`Event.elapsed_time`",
                "does not wait: both events are complete",
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
        ("extension/hooks.cpp", "Hooks"),
        "`at::PrivateUse1HooksInterface` over `at::AcceleratorHooksInterface`, registered by `at::RegisterPrivateUse1HooksInterface`.",
        {
            "isBuilt": ("`torch.accelerator`", "must not throw"),
            "isAvailable": (
                "`torch.accelerator`",
                "must not throw, and must not start the driver",
            ),
            "hasPrimaryContext": ("backward", "must not start the driver"),
            "init": ("lazy initialization", "once, by any thread; again if it threw"),
            "deviceCount": ("`torch.accelerator`, backward", ""),
            "setCurrentDevice": ("`torch.accelerator.set_device_index`", ""),
            "getCurrentDevice": ("`torch.accelerator`, pinned memory", ""),
            "exchangeDevice": ("`torch.accelerator.device_index`", ""),
            "maybeExchangeDevice": ("`torch.accelerator.device_index`", ""),
            "isPinnedPtr": (
                "`Tensor.is_pinned`, copies that do not wait",
                "asked of any address of the host, also in a forked process",
            ),
            "getPinnedMemoryAllocator": ("`Tensor.pin_memory`", ""),
            "getDeviceFromPtr": (
                "`at::from_blob`, DLPack",
                "may be called with the GIL, and must not take it",
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
        "`c10::DeviceAllocator` over `c10::Allocator`, registered by `c10::SetAllocator`. A `c10::Allocator` alone serves too; then there are no statistics and no `empty_cache`.",
        {
            "initialized": ("`torch.accelerator.memory`", ""),
            "emptyCache": (
                "`torch.accelerator.empty_cache`",
                "takes the allocator's lock; may wait, and `torch.accelerator` keeps the GIL",
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
                "`torch.accelerator` gives up the GIL first",
            ),
            "allocate": (
                "always",
                "takes the allocator's lock; gives up the GIL while it waits for memory",
            ),
            "is_simple_data_ptr": ("copies on write", ""),
            "raw_deleter": (
                "`raw_allocate`, copies on write",
                "the same function at every call",
            ),
            "copy_data": (
                "copies on write, `UntypedStorage.clone`",
                "gives up the GIL while it waits",
            ),
        },
    ),
    Interface(
        "Generator",
        (("c10/core/GeneratorImpl.h", "GeneratorImpl"),),
        ("random/generator.cpp", "GeneratorImpl"),
        "`c10::GeneratorImpl`, which the hooks make. PyTorch's rule is that whoever calls a method holds the generator's `mutex_`, so a method must not take it again. It excepts methods that only read, and Python calls two of them without it.",
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

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|^\s*#[^\n]*(?:\\\n[^\n]*)*", re.S | re.M)
_METHOD = re.compile(
    r"(?P<before>[^;{}()]*?)\b(?P<name>\w+)\s*\("
    r"(?P<arguments>(?:[^()]|\([^()]*\))*)\)\s*(?P<after>(?:const|noexcept|override|\s)*)"
    r"(?P<end>= 0;|= default;|= delete;|;|\{)",
    re.S,
)
_MESSAGE = re.compile(r'TORCH_CHECK\w*\(\s*false,\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', re.S)


def closing(text: str, start: int) -> int:
    """Returns where the brace ends that opens at ``start``."""
    depth = 0
    for index in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return index
    raise ValueError(f"nothing closes {text[start : start + 40]!r}")


def describe(body: str) -> str:
    """Says in Markdown what the body of a default does."""
    if found := _MESSAGE.search(body):
        message = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found[1]))
        return f"error: {message}"
    if "FAIL_PRIVATEUSE1HOOKS_FUNC" in body:
        old = (
            "the older registration of a generator, or " if "Generator" in body else ""
        )
        return f"{old}error: You should register PrivateUse1HooksInterface"
    if found := re.fullmatch(r"\s*return ([\w:]+);\s*", body):
        return f"returns `{found[1]}`"
    return "does nothing" if not body.strip() else "a body of PyTorch's"


def methods(header: str, name: str) -> dict[str, Method]:
    """Reads the virtual methods that a class declares or overrides.

    Args:
        header: The path below torch's ``include``.
        name: The class.

    Raises:
        ValueError: If the header has no such class.
    """
    text = _COMMENT.sub("", (INCLUDE / header).read_text(encoding="utf-8"))
    start = re.search(rf"struct \w+ {name}\b[^;{{]*\{{", text)
    if start is None:
        raise ValueError(f"{header} has no class {name}")
    text = text[start.end() : closing(text, start.end() - 1)]
    found, position = {}, 0
    while match := _METHOD.search(text, position):
        body = ""
        position = match.end()
        if match["end"] == "{":
            position = closing(text, match.end() - 1) + 1
            body = text[match.end() : position - 1]
        virtual = "virtual" in match["before"] or "override" in match["after"]
        if not virtual or match["before"].endswith("~"):
            continue
        pure = match["end"] == "= 0;"
        # One that is declared only is defined in a library.
        default = "" if pure else describe(body) if match["end"] == "{" else "PyTorch's"
        found[match["name"]] = Method(
            match["name"], pure, default, "noexcept" in match["after"]
        )
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
    file, name = interface.ours
    text = (SOURCES / file).read_text(encoding="utf-8")
    start = text.index(f"class {name} final")
    text = text[start : closing(text, text.index("{", start))]
    return set(
        re.findall(r"\b(\w+)\((?:[^()]|\([^()]*\))*\)[\w\s]*?\boverride\b", text)
    )


def part(interface: Interface) -> str:
    """Returns the section of a class.

    Raises:
        ValueError: If the headers and the entries here have different names.
    """
    found = merged(interface)
    if found.keys() != interface.notes.keys():
        names = ", ".join(sorted(found.keys() ^ interface.notes.keys()))
        raise ValueError(f"{interface.title}: the headers or this tool lack {names}")
    ours = overridden(interface)
    lines = [
        f"\n## {interface.title}\n",
        interface.about + "\n",
        "| method | needed | for | default | noexcept | threads and locks | here |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for method in found.values():
        purpose, threads = interface.notes[method.name]
        always = purpose == "always"
        needed = "pure virtual" if method.pure else "always" if always else "optional"
        cells = (
            f"`{method.name}`",
            needed,
            "every program" if always else purpose,
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
