# SPDX-License-Identifier: BSD-3-Clause
"""Programs in C and C++ that link to the library of the installed package."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import openreg_runtime as runtime
from support.programs import LAUNCHER, Ended, run

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("cc", "c++"))), reason="there is no compiler"
)
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
COUNT = runtime.device_count()

C_PROGRAM = """
#include <openreg/openreg.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const char in[4] = "abc";
  char out[4] = "";
  int count = 0;
  void* block = NULL;
  orDeviceProp prop = OPENREG_DEVICE_PROP_INIT;
  orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
  orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
  orSetting setting = OPENREG_SETTING_INIT;
  orFailureSpec spec = OPENREG_FAILURE_SPEC_INIT;
  if (orGetDeviceCount(&count) != orSuccess ||
      orMalloc(&block, 4) != orSuccess ||
      orMemcpy(block, in, 4, orMemcpyHostToDevice) != orSuccess ||
      orMemcpy(out, block, 4, orMemcpyDeviceToHost) != orSuccess ||
      orGetDeviceProperties(&prop, 0) != orSuccess ||
      orPointerGetAttributes(&attributes, block) != orSuccess ||
      orGetResourceUsage(&usage) != orSuccess ||
      orGetSetting(0, &setting) != orSuccess ||
      orFree(block) != orSuccess) {
    printf("%s\\n", orGetErrorMessage());
    return 1;
  }
  printf("%d devices, %s, %d\\n", count, out, (int)(attributes.size * spec.first));
  return 0;
}
"""
TEMPLATE_PROGRAM = """
#include <openreg/openreg.h>
#include <cstdio>

int main() {
  int count = 0;
  int sum = 0;
  if (orGetDeviceCount(&count) != orSuccess ||
      orLaunchKernel(nullptr, [&sum](int a, int b) { sum = a + b; }, 40, 2)
          != orSuccess ||
      orDeviceSynchronize() != orSuccess) {
    std::puts(orGetErrorMessage());
    return 1;
  }
  std::printf("%d devices, %d\\n", count, sum);
}
"""
PRINTS = f"{COUNT} devices, abc, 4\n"
TEMPLATE_PRINTS = f"{COUNT} devices, 42\n"

CMAKE_PROJECT = """
cmake_minimum_required(VERSION 3.26)
project(consumer LANGUAGES C CXX)
find_package(openreg {version} REQUIRED)
foreach(name IN ITEMS program11.c program14.cpp template17.cpp)
  string(REGEX MATCH "[0-9]+" standard ${{name}})
  add_executable(${{name}} ${{name}})
  target_link_libraries(${{name}} PRIVATE openreg::openreg)
  target_compile_options(${{name}} PRIVATE {warnings})
  set_target_properties(${{name}} PROPERTIES
    C_STANDARD ${{standard}} CXX_STANDARD ${{standard}}
    CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF C_EXTENSIONS OFF)
endforeach()
"""


def clean_run(*command: str | Path, **environment: str) -> Ended:
    """Runs a program without environment variables for libraries."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH", "PKG_CONFIG_PATH")
    }
    # This environment's CMake, even if the environment is not activated.
    programs = str(Path(sys.executable).parent)
    clean["PATH"] = os.pathsep.join([programs, clean.get("PATH", "")])
    clean["OPENREG_DEVICE_LAUNCHER"] = LAUNCHER
    return run(*command, environment=clean | environment, seconds=120)


def succeed(*command: str | Path, **environment: str) -> str:
    done = clean_run(*command, **environment)
    assert done.returncode == 0, f"{done.args}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def folder(kind: str) -> Path:
    """Runs the command line, like a build."""
    return Path(succeed(sys.executable, "-m", "openreg_runtime", kind).rstrip("\n"))


def pkg_config(variable: str) -> list[str]:
    """Reads flags from openreg.pc, with the program or, without it, by hand."""
    where = folder("pkgconfig-dir")
    if shutil.which("pkg-config"):
        option = f"--{variable.lower()}"
        return shlex.split(
            succeed("pkg-config", option, "openreg", PKG_CONFIG_PATH=str(where))
        )
    return parse_pc(where, variable)


def parse_pc(where: Path, variable: str) -> list[str]:
    """Reads a variable like pkg-config."""
    values = {"pcfiledir": str(where)}

    def expand(text: str) -> str:
        return re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], text)

    flags = []
    for line in (where / "openreg.pc").read_text().splitlines():
        if match := re.fullmatch(r"(\w+)=(.*)", line):
            values[match[1]] = expand(match[2])
        elif match := re.fullmatch(rf"{variable}: *(.*)", line):
            flags += shlex.split(expand(match[1]))
    return flags


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("cmake-dir", "openregConfig.cmake"),
        ("include-dir", "openreg/openreg.h"),
        ("library-dir", "libopenreg.so"),
        ("pkgconfig-dir", "openreg.pc"),
    ],
)
def test_command_prints_the_folder_of_the_file(kind: str, file: str) -> None:
    assert folder(kind).is_absolute()
    assert folder(kind).joinpath(file).is_file()


def test_commands_are_explained() -> None:
    text = succeed(sys.executable, "-m", "openreg_runtime", "--help")
    for command in ("info", "cmake-dir", "include-dir", "library-dir", "pkgconfig-dir"):
        assert command in text
    done = clean_run(sys.executable, "-m", "openreg_runtime", "cmake")
    assert done.returncode == 2
    assert "cmake-dir" in done.stderr  # accepted requests


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], Ended]:
    """Configures a CMake project that requests a version."""
    if not shutil.which("cmake", path=Path(sys.executable).parent) and not shutil.which(
        "cmake"
    ):
        pytest.skip("there is no CMake")

    def configure(version: str) -> Ended:
        (tmp_path / "program11.c").write_text(C_PROGRAM)
        (tmp_path / "program14.cpp").write_text(C_PROGRAM)
        (tmp_path / "template17.cpp").write_text(TEMPLATE_PROGRAM)
        (tmp_path / "CMakeLists.txt").write_text(
            CMAKE_PROJECT.format(version=version, warnings=" ".join(WARNINGS))
        )
        return clean_run(
            "cmake",
            *("-S", tmp_path, "-B", tmp_path / "build"),
            f"-Dopenreg_DIR={folder('cmake-dir')}",
        )

    return configure


def test_cmake_project_is_built_and_runs(project, tmp_path: Path) -> None:
    major_minor = ".".join(map(str, runtime.version()[:2]))
    configured = project(major_minor)
    assert configured.returncode == 0, configured.stderr
    succeed("cmake", "--build", tmp_path / "build")
    assert succeed(tmp_path / "build" / "program11.c") == PRINTS
    assert succeed(tmp_path / "build" / "program14.cpp") == PRINTS
    assert succeed(tmp_path / "build" / "template17.cpp") == TEMPLATE_PRINTS


def test_cmake_finds_each_version_that_is_compatible(project) -> None:
    major, minor, patch = runtime.version()
    for version in (f"{major}.{minor}", f"{major}.{minor}.{patch} EXACT"):
        assert project(version).returncode == 0, version
    for version in (f"{major}.{minor + 1}", f"{major + 1}.0", f"{major}.{minor}.99"):
        done = project(version)
        assert done.returncode != 0, version
        # CMake breaks lines anywhere.
        assert "compatible with requested version" in " ".join(done.stderr.split())


def test_program_is_built_with_pkg_config_and_runs(tmp_path: Path) -> None:
    source = tmp_path / "program.cpp"
    source.write_text(C_PROGRAM)
    flags = [*pkg_config("Cflags"), source, *pkg_config("Libs")]
    succeed("c++", "-std=c++14", *WARNINGS, *flags, "-o", tmp_path / "program")
    assert succeed(tmp_path / "program") == PRINTS


def test_parsed_flags_are_those_of_pkg_config() -> None:
    """The test above takes its flags from the file or from pkg-config."""
    if not shutil.which("pkg-config"):
        pytest.skip("there is no pkg-config")
    for variable in ("Cflags", "Libs"):
        parsed = parse_pc(folder("pkgconfig-dir"), variable)
        assert parsed == pkg_config(variable)


@pytest.mark.parametrize(
    ("compiler", "standard"),
    [
        ("cc", "c11"),
        ("cc", "c17"),
        ("c++", "c++11"),
        ("c++", "c++14"),
        ("c++", "c++17"),
        ("c++", "c++20"),
    ],
)
def test_header_compiles_without_warnings(
    tmp_path: Path, compiler: str, standard: str
) -> None:
    source = tmp_path / ("program.c" if compiler == "cc" else "program.cpp")
    source.write_text(C_PROGRAM)
    # Not as a system folder, which would hide warnings.
    include = ["-I", folder("include-dir")]
    command = [compiler, f"-std={standard}", *WARNINGS, *include, "-fsyntax-only"]
    succeed(*command, source)


@pytest.mark.parametrize("standard", ["c++11", "c++14"])
def test_template_before_cxx17_names_the_needed_standard(
    tmp_path: Path, standard: str
) -> None:
    source = tmp_path / "program.cpp"
    source.write_text("#include <openreg/openreg.h>\n#include <openreg/openreg.hpp>\n")
    include = ["-I", folder("include-dir")]
    done = clean_run("c++", f"-std={standard}", *include, "-fsyntax-only", source)
    assert done.returncode != 0
    assert "openreg.hpp needs C++17" in done.stderr


@pytest.mark.parametrize("compiler", ["cc", "c++"])
def test_error_that_is_not_looked_at_is_a_warning(
    tmp_path: Path, compiler: str
) -> None:
    source = tmp_path / ("program.c" if compiler == "cc" else "program.cpp")
    source.write_text("#include <openreg/openreg.h>\nint main() { orInit(); }\n")
    standard = "c11" if compiler == "cc" else "c++14"
    include = ["-I", folder("include-dir")]
    # -fsyntax-only would stop before this warning.
    output = ["-c", source, "-o", tmp_path / "program.o"]
    done = clean_run(compiler, f"-std={standard}", *include, *output)
    assert done.returncode == 0, done.stderr
    assert "orInit" in done.stderr
    assert "-Wunused-result" in done.stderr
