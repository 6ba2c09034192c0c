// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API that launches kernels, messages and host functions.
#include "backend/backend.h"
#include "backend/executor.h"
#include "base/error.h"
#include "base/struct_size.h"
#include "device/stream_handles.h"

#include <openreg/activity.h>

#include <cstdint>
#include <string>

using namespace openreg;

namespace {

/// Throws orErrorInvalidValue for a null pointer and for invalid members.
LaunchInfo read_info(const orLaunchInfo* info) {
  check_struct_size(info, "info");
  if (info->kind > orActivityHostFunc) {
    throw Failure(
        orErrorInvalidValue,
        "info.kind " + std::to_string(static_cast<int>(info->kind)) +
            " is not orActivityKernel, orActivityMemcpy, orActivityMemset or "
            "orActivityHostFunc");
  }
  if (info->direction > orMemcpyDefault ||
      info->hostMemory > orMemoryTypeDevice) {
    throw Failure(
        orErrorInvalidValue,
        "info.direction " + std::to_string(static_cast<int>(info->direction)) +
            " or info.hostMemory " +
            std::to_string(static_cast<int>(info->hostMemory)) +
            " is out of range: expected an orMemcpyKind and an orMemoryType");
  }
  return {
      info->name,
      info->bytes,
      static_cast<std::uint8_t>(info->kind),
      static_cast<std::uint8_t>(info->direction),
      static_cast<std::uint8_t>(info->hostMemory)};
}

Launch launch_of(
    orKernel_t kernel,
    void* args,
    orKernel_t cleanup,
    const orLaunchInfo* info = nullptr) {
  check_not_null(reinterpret_cast<const void*>(kernel), "kernel");
  return {
      kernel, args, cleanup, info != nullptr ? read_info(info) : LaunchInfo{}};
}

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

/// Returns before the command has run.
template <typename Work>
void enqueue(orStream_t stream, const Work& command) {
  Stream& object = stream_of(stream);
  object.enqueue(command, object.check_usable());
}

/// Runs the command on the calling thread.
template <typename Work>
void run(orStream_t stream, const Work& command) {
  Stream& object = stream_of(stream);
  object.run(command, object.check_usable());
}

} // namespace

extern "C" {

orError_t orLaunchKernel(
    orStream_t stream,
    orKernel_t kernel,
    void* args,
    orKernel_t cleanup) noexcept {
  return api_call("orLaunchKernel", [&] {
    enqueue(stream, launch_of(kernel, args, cleanup));
  });
}

orError_t orLaunchKernelBlocking(
    orStream_t stream,
    orKernel_t kernel,
    void* args) noexcept {
  return api_call("orLaunchKernelBlocking", [&] {
    run(stream, launch_of(kernel, args, nullptr));
  });
}

orError_t orLaunchKernelWithInfo(
    orStream_t stream,
    orKernel_t kernel,
    void* args,
    orKernel_t cleanup,
    const orLaunchInfo* info) noexcept {
  return api_call("orLaunchKernelWithInfo", [&] {
    enqueue(stream, launch_of(kernel, args, cleanup, info));
  });
}

orError_t orLaunchKernelBlockingWithInfo(
    orStream_t stream,
    orKernel_t kernel,
    void* args,
    const orLaunchInfo* info) noexcept {
  return api_call("orLaunchKernelBlockingWithInfo", [&] {
    run(stream, launch_of(kernel, args, nullptr, info));
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
    enqueue(stream, message_of({name}, data, size, onReply, args, cleanup));
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
    run(stream, message_of({name}, data, size, onReply, args, nullptr));
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
    const LaunchInfo read = read_info(info);
    enqueue(stream, message_of(read, data, size, onReply, args, cleanup));
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
    const LaunchInfo read = read_info(info);
    run(stream, message_of(read, data, size, onReply, args, nullptr));
  });
}

orError_t orLaunchHostFunc(
    orStream_t stream,
    orHostFn_t fn,
    void* userData,
    orKernel_t cleanup) noexcept {
  return api_call("orLaunchHostFunc", [&] {
    check_not_null(reinterpret_cast<const void*>(fn), "fn");
    Stream& object = stream_of(stream);
    object.call({fn, userData, cleanup}, object.check_usable());
  });
}

} // extern "C"
