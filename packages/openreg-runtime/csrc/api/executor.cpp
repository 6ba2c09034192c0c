// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API for executors and device processes.
#include "backend/executor.h"

#include "backend/process/launcher.h"
#include "backend/process/serve.h"
#include "base/error.h"
#include "base/struct_size.h"

#include <string>
#include <utility>
#include <vector>

using namespace openreg;

extern "C" {

orError_t orSetExecutor(const orExecutor* given) noexcept {
  return api_call("orSetExecutor", [&] {
    const orExecutor value = read_struct(given, "executor");
    check_not_null(reinterpret_cast<const void*>(value.execute), "execute");
    Executor made{value.execute, {}, value.start ? value.start : ""};
    for (std::size_t i = 0; i < value.libraryCount; ++i) {
      check_not_null(value.libraries[i], "libraries");
      made.libraries.emplace_back(value.libraries[i]);
    }
    set_executor(std::move(made));
  });
}

orError_t orSetDeviceLauncher(
    const char* const* arguments,
    size_t count) noexcept {
  return api_call("orSetDeviceLauncher", [&] {
    check_not_null(arguments, "arguments");
    std::vector<std::string> words;
    for (std::size_t i = 0; i < count; ++i) {
      check_not_null(arguments[i], "arguments");
      words.emplace_back(arguments[i]);
    }
    set_launcher(std::move(words));
  });
}

orError_t orServeDevice(
    int socket,
    const orMemoryView* view,
    orStartExecutor_t start) noexcept {
  return api_call("orServeDevice", [&] {
    check_not_null(view, "view");
    serve_device(socket, *view, start);
  });
}

} // extern "C"
