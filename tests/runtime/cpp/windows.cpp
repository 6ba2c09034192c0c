// SPDX-License-Identifier: BSD-3-Clause
// Calls of the Windows API, whose header defines macros that tests collide
// with.
#include "windows.h"

#include "two_processes_windows.h"

#include <cstdio>
#include <stdexcept>
#include <string>
#include <windows.h>

std::size_t page_size() {
  SYSTEM_INFO info{};
  GetSystemInfo(&info);
  return info.dwAllocationGranularity;
}

std::filesystem::path make_temporary_folder() {
  static int count = 0;
  const std::string name = "openreg-test-" +
      std::to_string(GetCurrentProcessId()) + "-" + std::to_string(++count);
  auto folder = std::filesystem::temp_directory_path() / name;
  std::filesystem::create_directory(folder);
  return std::filesystem::canonical(folder);
}

void* load_library(const char* path) {
  return LoadLibraryA(path);
}

void* find_function(void* library, const char* name) {
  return reinterpret_cast<void*>(
      GetProcAddress(static_cast<HMODULE>(library), name));
}

namespace {

// "LINE READ WRITE PROCESS": the call that starts a process, and its handles.
constexpr const char* kRole = "OPENREG_TEST_OTHER_PROCESS";

struct Role {
  int line = 0;
  unsigned long long read = 0;
  unsigned long long write = 0;
  unsigned long long process = 0;
};

Role role() {
  Role result;
  if (const char* text = std::getenv(kRole)) {
    static_cast<void>(std::sscanf(
        text,
        "%d %llu %llu %llu",
        &result.line,
        &result.read,
        &result.write,
        &result.process));
  }
  return result;
}

HANDLE handle_of(unsigned long long number) {
  return reinterpret_cast<HANDLE>(static_cast<std::uintptr_t>(number));
}

unsigned long long number_of(HANDLE handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

struct Pipe {
  HANDLE read = nullptr;
  HANDLE write = nullptr;

  Pipe() {
    SECURITY_ATTRIBUTES inherited{sizeof(inherited), nullptr, TRUE};
    if (CreatePipe(&read, &write, &inherited, 0) == 0) {
      throw std::runtime_error("cannot create a pipe");
    }
  }
};

} // namespace

OtherProcess OtherProcess::start(const char* test, int line) {
  const Pipe to_other;
  const Pipe from_other;
  for (const HANDLE own : {to_other.write, from_other.read}) {
    SetHandleInformation(own, HANDLE_FLAG_INHERIT, 0);
  }
  char text[96];
  std::snprintf(
      text,
      sizeof(text),
      "%d %llu %llu %llu",
      line,
      number_of(to_other.read),
      number_of(from_other.write),
      static_cast<unsigned long long>(GetCurrentProcessId()));
  setenv(kRole, text, 1);
  char program[MAX_PATH];
  GetModuleFileNameA(nullptr, program, sizeof(program));
  std::string command =
      '"' + std::string(program) + "\" --gtest_filter=" + test;
  STARTUPINFOA startup{};
  startup.cb = sizeof(startup);
  PROCESS_INFORMATION process{};
  const BOOL started = CreateProcessA(
      nullptr,
      command.data(),
      nullptr,
      nullptr,
      TRUE,
      0,
      nullptr,
      nullptr,
      &startup,
      &process);
  unsetenv(kRole);
  CloseHandle(to_other.read);
  CloseHandle(from_other.write);
  if (started == 0) {
    throw std::runtime_error("cannot start " + command);
  }
  CloseHandle(process.hThread);
  return OtherProcess(
      from_other.read,
      to_other.write,
      process.hProcess,
      static_cast<int>(process.dwProcessId));
}

bool OtherProcess::is_this(int line) {
  return role().line == line;
}

OtherProcess OtherProcess::starter() {
  const Role own = role();
  const auto number = static_cast<DWORD>(own.process);
  return OtherProcess(
      handle_of(own.read),
      handle_of(own.write),
      OpenProcess(PROCESS_TERMINATE | SYNCHRONIZE, FALSE, number),
      static_cast<int>(number));
}

bool OtherProcess::write(const void* bytes, std::size_t size) {
  DWORD written = 0;
  return WriteFile(
             write_, bytes, static_cast<DWORD>(size), &written, nullptr) != 0 &&
      written == size;
}

bool OtherProcess::read(void* bytes, std::size_t size) {
  auto* to = static_cast<char*>(bytes);
  while (size > 0) {
    DWORD length = 0;
    if (ReadFile(read_, to, static_cast<DWORD>(size), &length, nullptr) == 0 ||
        length == 0) {
      return false;
    }
    to += length;
    size -= length;
  }
  return true;
}

void OtherProcess::kill() const {
  TerminateProcess(process_, kKilled);
}

void OtherProcess::wait_for_end() const {
  WaitForSingleObject(process_, INFINITE);
}

int OtherProcess::close() {
  CloseHandle(read_);
  CloseHandle(write_);
  wait_for_end();
  DWORD status = 0;
  GetExitCodeProcess(process_, &status);
  CloseHandle(process_);
  return static_cast<int>(status);
}
