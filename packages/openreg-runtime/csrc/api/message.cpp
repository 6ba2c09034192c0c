// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API about messages, executors and processes of devices.
#include "api/launch_info.h"
#include "backend/executor.h"
#include "backend/process/launcher.h"
#include "backend/process/serve.h"
#include "base/error.h"
#include "base/struct_size.h"
#include "device/stream_handles.h"

#include <string>
#include <utility>
#include <vector>

using namespace openreg;

namespace {

Message message_of(
    LaunchInfo info,
    const void* data,
    std::size_t size,
    orReply_t on_reply,
    void* args,
    orKernel_t cleanup) {
  check_not_null(info.name, "name");
  check_not_null(data, "data");
  check_not_null(reinterpret_cast<const void*>(on_reply), "onReply");
  executor(); // or nobody could run it
  return {info, data, size, on_reply, args, cleanup};
}

} // namespace

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

orError_t orLaunchMessage(
    orStream_t stream,
    const char* name,
    const void* data,
    size_t size,
    orReply_t onReply,
    void* args,
    orKernel_t cleanup) noexcept {
  return api_call("orLaunchMessage", [&] {
    const auto message = message_of({name}, data, size, onReply, args, cleanup);
    Stream& object = stream_of(stream);
    object.enqueue(message, object.check_usable());
  });
}

orError_t orLaunchMessageBlocking(
    orStream_t stream,
    const char* name,
    const void* data,
    size_t size,
    orReply_t onReply,
    void* args) noexcept {
  return api_call("orLaunchMessageBlocking", [&] {
    const auto message = message_of({name}, data, size, onReply, args, nullptr);
    Stream& object = stream_of(stream);
    object.run(message, object.check_usable());
  });
}

orError_t orLaunchMessageWithInfo(
    orStream_t stream,
    const void* data,
    size_t size,
    orReply_t onReply,
    void* args,
    orKernel_t cleanup,
    const orLaunchInfo* info) noexcept {
  return api_call("orLaunchMessageWithInfo", [&] {
    const auto message =
        message_of(read_info(info), data, size, onReply, args, cleanup);
    Stream& object = stream_of(stream);
    object.enqueue(message, object.check_usable());
  });
}

orError_t orLaunchMessageBlockingWithInfo(
    orStream_t stream,
    const void* data,
    size_t size,
    orReply_t onReply,
    void* args,
    const orLaunchInfo* info) noexcept {
  return api_call("orLaunchMessageBlockingWithInfo", [&] {
    const auto message =
        message_of(read_info(info), data, size, onReply, args, nullptr);
    Stream& object = stream_of(stream);
    object.run(message, object.check_usable());
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
