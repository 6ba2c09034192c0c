# SPDX-License-Identifier: BSD-3-Clause
"""C++ programs that use devices in separate processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.programs import LAUNCHER, process_of, run, variables

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="no compiler")

EXECUTOR = r"""
#include <openreg/openreg.h>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

namespace {
int execute(const void* message, size_t size, orReply_t reply, void* args) {
  const std::string text(static_cast<const char*>(message), size);
  if (text == "crash") std::abort();
  if (text == "fail") throw std::runtime_error("the executor cannot do this");
  if (text == "nap") std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (text == "sleep") std::this_thread::sleep_for(std::chrono::hours(1));
  reply(args, text.data(), text.size());
  return text == "describe a failure" ? 1 : 0;
}
}  // namespace

extern "C" orError_t bring(const char* library) {
  const char* libraries[] = {library};
  orExecutor executor = OPENREG_EXECUTOR_INIT;
  executor.execute = &execute;
  executor.libraries = libraries;
  executor.libraryCount = 1;
  executor.start = "start";
  return orSetExecutor(&executor);
}
extern "C" void start(const orMemoryView*) { bring(""); }
"""

PROGRAM = r"""
#include <openreg/openreg.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" orError_t bring(const char* library);

void expect(orError_t error) {
  if (error != orSuccess) {
    std::printf("%s: %s\n", orGetErrorName(error), orGetErrorMessage());
    std::exit(0);
  }
}
void report(const char* what, orError_t error) {
  std::printf("%s: %s\n", what, error ? orGetErrorMessage() : "done");
}
void keep(void* args, const void* reply, size_t size) {
  static_cast<std::vector<std::string>*>(args)->emplace_back(
      static_cast<const char*>(reply), size);
}
void ignore(void*, const void*, size_t) {}
void send(orStream_t stream, const char* text, orReply_t reply, void* args) {
  expect(orLaunchMessage(
      stream, text, text, std::strlen(text), reply, args, nullptr));
}

int main(int, char** arguments) {
  expect(bring(arguments[1]));
  const std::string what = arguments[2];
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  orStream_t stream = nullptr;
  expect(orStreamCreate(&stream));
  std::vector<std::string> replies;
"""

CASES = {
    "order": r"""
  std::vector<std::string> texts;
  for (int i = 0; i < 3000; ++i) texts.push_back(std::string(i, 'a') + "b");
  for (const auto& text : texts) send(stream, text.c_str(), keep, &replies);
  expect(orStreamSynchronize(stream));
  std::printf("%d\n", replies == texts);
""",
    "failure": r"""
  send(stream, "fail", keep, &replies);
  send(stream, "after", keep, &replies);
  report("wait", orStreamSynchronize(stream));
  report("again", orStreamSynchronize(stream));
  send(stream, "later", keep, &replies);
  expect(orStreamSynchronize(stream));
  std::printf("%zu %s\n", replies.size(), replies.at(0).c_str());
""",
    "described failure": r"""
  send(stream, "nap", ignore, nullptr);
  send(stream, "describe a failure", [](void*, const void*, size_t) {
    throw std::runtime_error("as the reply says");
  }, nullptr);
  send(stream, "crash", keep, &replies);
  report("wait", orStreamSynchronize(stream));
  send(stream, "later", keep, &replies);
  expect(orStreamSynchronize(stream));
  std::printf("%zu %s\n", replies.size(), replies.at(0).c_str());
""",
    "blocking": r"""
  send(stream, "one", [](void* args, const void*, size_t) {
    const auto stream = static_cast<orStream_t>(args);
    report("run", orLaunchMessageBlocking(stream, "x", "x", 1, ignore, nullptr));
    report("enqueue",
        orLaunchMessage(stream, "x", "x", 1, ignore, nullptr, nullptr));
  }, stream);
  send(stream, "two", keep, &replies);
  expect(orStreamSynchronize(stream));
  std::printf("%zu %s\n", replies.size(), replies.at(0).c_str());
""",
    "nested": r"""
  struct Outer {
    orStream_t stream;
    std::vector<std::string> replies;
  } outer{stream, {}};
  expect(orLaunchMessageBlocking(stream, "long", "a long text", 11,
      [](void* args, const void* reply, size_t size) {
        auto* outer = static_cast<Outer*>(args);
        expect(orLaunchMessageBlocking(
            outer->stream, "x", "short", 5, keep, &outer->replies));
        keep(&outer->replies, reply, size);
      }, &outer));
  std::printf("%s, %s\n", outer.replies.at(0).c_str(), outer.replies.at(1).c_str());
""",
    "loss": r"""
  void* block = nullptr;
  void* memory = nullptr;
  expect(orMalloc(&block, 4096));
  expect(orMallocHost(&memory, 4096));
  send(stream, "sleep", keep, &replies);
  for (int i = 0; i < 250; ++i) {
    expect(orMemcpyAsync(block, memory, 4096, orMemcpyDefault, stream));
  }
  std::printf("sleeps\n");
  report("wait", orStreamSynchronize(stream));
""",
    "memory": r"""
  void* block = nullptr;
  void* kernel = nullptr;
  expect(orMalloc(&block, 64));
  report("unprotect", orMemoryUnprotect(block));
  report("protect", orMemoryProtect(block));
  report("kernel", orGetKernelPointer(&kernel, block));
""",
    "crash": r"""
  send(stream, "first", keep, &replies);
  send(stream, "crash", keep, &replies);
  send(stream, "third", keep, &replies);
  report("wait", orStreamSynchronize(stream));
  std::printf("%zu\n", replies.size());
  expect(orDeviceReset());
  expect(orLaunchMessageBlocking(nullptr, "x", "again", 5, keep, &replies));
  std::printf("%s\n", replies.back().c_str());
""",
    "reset": r"""
  for (int i = 0; i < 200; ++i) send(stream, "nap", keep, &replies);
  expect(orDeviceReset());
  std::printf("%d\n", replies.size() < 200);
  expect(orLaunchMessageBlocking(nullptr, "x", "again", 5, keep, &replies));
  std::printf("%s\n", replies.back().c_str());
""",
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Builds a program that sends messages, and the library of its executor."""
    folder = tmp_path_factory.mktemp("messages")
    cases = "".join(
        f'  if (what == "{name}") {{{code}  }}\n' for name, code in CASES.items()
    )
    (folder / "executor.cpp").write_text(EXECUTOR)
    (folder / "program.cpp").write_text(PROGRAM + cases + "}\n")
    executor, program = folder / "libexecutor.so", folder / "program"
    where = runtime_folder("library-dir")
    compiler = [
        "c++",
        "-std=c++17",
        "-Wall",
        "-Werror",
        "-I",
        runtime_folder("include-dir"),
    ]
    links = ["-L", where, f"-Wl,-rpath,{where}:{folder}", "-lopenreg"]
    for command in (
        [*compiler, "-shared", "-fPIC", "executor.cpp", "-o", executor, *links],
        [*compiler, "program.cpp", "-o", program, executor, *links],
    ):
        compiled = run(*command, folder=folder)
        assert compiled.returncode == 0, compiled.stderr
    return program, executor


def runtime_folder(kind: str) -> str:
    printed = run(sys.executable, "-m", "openreg_runtime", kind)
    assert printed.returncode == 0, printed.stderr
    return printed.stdout.strip()


def lines(programs: tuple[Path, Path], case: str) -> list[str]:
    """Runs a case; returns what it printed."""
    program, executor = programs
    done = run(program, executor, case, environment=environment())
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def environment() -> dict[str, str]:
    return variables(
        OPENREG_ISOLATION="process",
        OPENREG_DEVICE_LAUNCHER=LAUNCHER,
        OPENREG_WAIT_TIMEOUT="30000",
    )


def test_replies_come_in_the_order_of_the_stream(programs: tuple[Path, Path]) -> None:
    assert lines(programs, "order") == ["1"]


def test_failure_drops_the_messages_behind_it(programs: tuple[Path, Path]) -> None:
    first, *others = lines(programs, "failure")
    assert first.startswith("wait: orStreamSynchronize: ")
    assert "the executor cannot do this" in first
    assert others == ["again: done", "1 later"]


def test_failure_that_a_reply_describes_drops_the_messages_behind_it(
    programs: tuple[Path, Path],
) -> None:
    first, rest = lines(programs, "described failure")
    assert "as the reply says" in first
    assert rest == "1 later"


def test_reply_of_an_enqueued_message_cannot_run_one_on_its_stream(
    programs: tuple[Path, Path],
) -> None:
    refused, enqueued, rest = lines(programs, "blocking")
    assert "the handler of a message's reply cannot block" in refused
    assert (enqueued, rest) == ("enqueue: done", "1 two")


def test_reply_of_a_blocking_message_may_send_another(
    programs: tuple[Path, Path],
) -> None:
    assert lines(programs, "nested") == ["short, a long text"]


def test_loss_ends_running_calls_immediately(programs: tuple[Path, Path]) -> None:
    program, executor = programs
    process = subprocess.Popen(
        [program, executor, "loss"],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "sleeps\n"
        os.kill(process_of(0, process.pid), signal.SIGKILL)
        killed = time.monotonic()
        text = process.stdout.readline()
        assert time.monotonic() - killed < 2, "late"
    assert "was ended by signal 9 (SIGKILL) while it ran sleep" in text


def test_memory_of_the_device_cannot_be_opened(programs: tuple[Path, Path]) -> None:
    unprotect, protect, kernel = lines(programs, "memory")
    assert "is in the device process's memory" in unprotect
    assert protect == "protect: done"
    assert "is in the device process's memory" in kernel


def test_crash_names_its_message_and_a_reset_recovers(
    programs: tuple[Path, Path],
) -> None:
    lost, replies, again = lines(programs, "crash")
    assert "was ended by signal 6 (SIGABRT) while it ran crash" in lost
    assert (replies, again) == ("1", "again")


def test_reset_ends_messages_that_began(programs: tuple[Path, Path]) -> None:
    assert lines(programs, "reset") == ["1", "again"]
