# SPDX-License-Identifier: BSD-3-Clause
"""tools/manylinux: libraries that old systems can load."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("g++"), reason="needs g++ on Linux"
)

# Each function has a version after 2.28 in a newer glibc.
SOURCE = """
#include <cmath>
#include <pthread.h>
extern "C" double use(pthread_t* thread, void* (*run)(void*), double x) {
  pthread_create(thread, nullptr, run, nullptr);
  return std::exp(x);
}
"""
# Without optimization, the library has its own copies of inline functions.
EXCEPTION = """
#include <exception>
extern "C" int use() {
  std::exception_ptr held;
  try { throw 7; } catch (...) { held = std::current_exception(); }
  for (int count = 0; count < 1000; ++count) { std::exception_ptr copy(held); }
  try { std::rethrow_exception(held); } catch (int thrown) { return thrown; }
  return 0;
}
"""
TOO_NEW = '#include <unistd.h>\nextern "C" int number() { return gettid(); }\n'


@pytest.fixture
def link_libraries(load_tool):
    return load_tool("manylinux/link_libraries")


def build(folder, source, *options):
    code = folder / "code.cpp"
    code.write_text(source)
    library = folder / "library.so"
    options = ["-shared", "-fPIC", "-o", library, code, *options]
    result = subprocess.run(["g++", *options], capture_output=True, text=True)
    return library, result.stderr


@pytest.fixture
def stubs(link_libraries, tmp_path):
    folder = tmp_path / "stubs"
    link_libraries.write_libraries("g++", folder)
    subprocess.run(["ar", "qc", folder / "libnewer_symbols.a"], check=True)
    return folder


def test_a_link_binds_versions_that_old_systems_have(link_libraries, stubs, tmp_path):
    library, errors = build(tmp_path, SOURCE, f"-L{stubs}", "-Wl,-z,defs")
    assert not errors
    bound = {s.name: s.version for s in link_libraries.symbols(library)}
    for name in ("pthread_create", "exp"):
        assert link_libraries.number_of(bound[name])


def test_a_link_fails_on_a_function_that_old_systems_lack(stubs, tmp_path):
    _, errors = build(tmp_path, TOO_NEW, f"-L{stubs}", "-Wl,-z,defs")
    assert "undefined reference to `gettid'" in errors


def test_the_check_names_functions_that_old_systems_lack(
    link_libraries, stubs, tmp_path
):
    library, errors = build(tmp_path, TOO_NEW, f"-L{stubs}")
    assert not errors
    assert link_libraries.lacking("g++", library) == ["gettid"]


def test_exceptions_are_copied_with_the_functions_of_old_systems(
    link_libraries, stubs, tmp_path
):
    newer = link_libraries.Path(link_libraries.__file__).with_name("newer_symbols.cpp")
    made = tmp_path / "newer_symbols.o"
    command = ["g++", "-std=c++20", "-O2", "-fPIC", "-c", newer, "-o", made]
    subprocess.run(command, check=True)
    subprocess.run(["ar", "qc", stubs / "libnewer_symbols.a", made], check=True)
    hide = f"-L{stubs}", "-Wl,--exclude-libs,libnewer_symbols.a", "-lnewer_symbols"
    options = "-O0", *hide, "-Wl,-z,defs", "-l:libdl.so.2"
    library, errors = build(tmp_path, EXCEPTION, *options)
    assert not errors
    assert link_libraries.lacking("g++", library) == []
    program = f"import ctypes; print(ctypes.CDLL({str(library)!r}).use())"
    used = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert (used.returncode, used.stdout) == (0, b"7\n")
