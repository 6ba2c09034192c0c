# SPDX-License-Identifier: BSD-3-Clause
"""Compiles and loads kernels with Inductor's code cache and a launching binding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import CDLL
from types import ModuleType
from typing import Any

from torch._inductor import config
from torch._inductor.async_compile import AsyncCompile, get_compile_threads
from torch._inductor.codecache import CppPythonBindingsCodeCache, LambdaFuture
from torch._inductor.utils import clear_on_fresh_cache

# Kernels look up their capsules when they are loaded and launched.
import openreg_aten._C  # noqa: F401
import openreg_inductor._C  # noqa: F401
from openreg_inductor import _source

_HEADERS = _source.headers("launch.h", "bound.h", "binding.h")
_FUNCTION = """
static PyObject* kernel_py(PyObject*, PyObject* const* values, Py_ssize_t given) {{
  using namespace openreg::inductor;
  return guarded("{name}", values, given, {count}, [](Arguments& arguments) {{
    return launch<&kernel>({may_raise}, arguments{parsed});
  }});
}}

static PyMethodDef methods[] = {{
    {{"kernel", reinterpret_cast<PyCFunction>(kernel_py), METH_FASTCALL, ""}},
    {{NULL, NULL, 0, NULL}}}};
static PyModuleDef module = {{PyModuleDef_HEAD_INIT, "kernel", NULL, -1, methods}};

PyMODINIT_FUNC PyInit_kernel(void) {{
  using namespace openreg::inductor;
  launcher = static_cast<const Launcher*>(
      PyCapsule_Import("openreg_inductor._C.launcher", 0));
  return launcher == nullptr ? NULL : PyModule_Create(&module);
}}
"""


@clear_on_fresh_cache
class _KernelCodeCache(CppPythonBindingsCodeCache):
    """The kernels that this process has loaded."""

    cache: dict[str, Callable[[], CDLL | ModuleType]] = {}  # noqa: RUF012  (as its base)

    @staticmethod
    def cache_clear() -> None:
        _KernelCodeCache.cache.clear()


def load_kernel(
    compiler: AsyncCompile, name: str, types: Sequence[str], source: str
) -> Any:
    """Compiles a kernel, unless it is cached, and loads it.

    Args:
        compiler: The compiler of the kernel's graph.
        name: The kernel's name, for errors.
        types: The C++ types of its arguments.
        source: The source, with a function ``kernel``.

    Returns:
        A function of the device's index and the kernel's arguments, or a future.
    """
    submit = compiler.submit if get_compile_threads() > 1 else None
    # A macro is defined before the prefix, so the prefix cannot be precompiled.
    with config.patch(
        cpp_cache_precompile_headers=config.cpp_cache_precompile_headers
        and not _source.divides(source)
    ):
        load = _KernelCodeCache.load_async(
            _source.rewrite(source) + _binding(name, types, source),
            "cpu",
            submit_fn=submit,
        )
    if submit is None:
        return load().kernel
    return LambdaFuture(lambda: load().kernel)


def _binding(name: str, types: Sequence[str], source: str) -> str:
    """Generates the Python function of a kernel."""
    parsed = [
        f", parse<{_parsed_type(each)}>(arguments, {number})"
        for number, each in enumerate(types, 1)
    ]
    return f"{_HEADERS}\n" + _FUNCTION.format(
        count=len(types) + 1,
        name=name,
        may_raise="true" if _source.may_raise(source) else "false",
        parsed="".join(parsed),
    )


def _parsed_type(argument: str) -> str:
    is_pointer = argument.endswith("*")
    return argument if is_pointer else argument.removeprefix("const ")
