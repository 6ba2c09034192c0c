// SPDX-License-Identifier: BSD-3-Clause
// The stream part of the C API.
#include "stream/stream.h"

#include "base/error.h"
#include "base/handle_table.h"
#include "base/process.h"
#include "base/thread_local.h"
#include "device/device.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <pthread.h>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace openreg {
namespace {

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -3;

using Streams = HandleTable<Stream, orStream_t, HandleKind::kStream>;

Streams& streams() {
  static auto* value = new Streams;
  return *value;
}

std::atomic<std::size_t> g_default_handles{0};

/// Handles of the default streams, made once.
orStream_t default_handle(int device) {
  static const auto* handles = [] {
    auto* made = new std::vector<orStream_t>;
    for (int index = 0; index < runtime().device_count(); ++index) {
      made->push_back(
          streams().insert(&runtime().device(index).default_stream()));
    }
    g_default_handles = made->size();
    return made;
  }();
  check_device(device, static_cast<int>(handles->size()));
  return (*handles)[static_cast<std::size_t>(device)];
}

/// The streams of threads, apart from those that a program makes: nobody but
/// the thread gets their handles, which end with it or with a reset.
Streams& thread_streams() {
  static auto* value = new Streams;
  return *value;
}

/// A new stream of the device as a handle of the table.
orStream_t make_stream(Streams& table, Device& device, int priority) {
  Stream& stream = device.create_stream(priority);
  try {
    return table.insert(&stream);
  } catch (...) {
    device.destroy_stream(stream);
    throw;
  }
}

/// What orStreamPerThread is for one thread.
class ThreadStreams {
 public:
  ThreadStreams() = default;
  ThreadStreams(const ThreadStreams&) = delete;
  ThreadStreams& operator=(const ThreadStreams&) = delete;
  ~ThreadStreams() {
    for (const orStream_t handle : handles_) {
      // Null where a device has none, and where a reset has ended it.
      if (Stream* stream = thread_streams().try_remove(handle)) {
        runtime().device(stream->device()).destroy_stream(*stream);
      }
    }
  }

  Stream& of(Device& device) {
    const auto index = static_cast<std::size_t>(device.index());
    if (handles_.size() <= index) {
      handles_.resize(index + 1);
    }
    if (Stream* stream = thread_streams().find_object(handles_[index])) {
      return *stream;
    }
    handles_[index] = make_stream(thread_streams(), device, kLeastPriority);
    return *thread_streams().find_object(handles_[index]);
  }

 private:
  std::vector<orStream_t> handles_; // by device
};

OPENREG_THREAD_LOCAL ThreadStreams* t_streams = nullptr;

/// Ends the streams of a thread with it: after its thread_local variables,
/// which may use them. A child that was forked has none, and the main thread of
/// a process that exits keeps its own.
pthread_key_t thread_end() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    const int error = pthread_key_create(&made, [](void*) {
      if (!process::in_bad_fork()) {
        delete std::exchange(t_streams, nullptr);
      }
    });
    if (error != 0) {
      throw Failure(
          orErrorMemoryAllocation,
          std::string("orStreamPerThread needs a key of threads: ") +
              std::strerror(error));
    }
    return made;
  }();
  return key;
}

Stream& thread_stream() {
  Device& device = runtime().device(current_device());
  if (t_streams == nullptr) {
    auto streams = std::make_unique<ThreadStreams>();
    if (pthread_setspecific(thread_end(), streams.get()) != 0) {
      throw std::bad_alloc();
    }
    t_streams = streams.release();
  }
  return t_streams->of(device);
}

/// What the C function of that name does.
orError_t create_stream(
    const char* function,
    orStream_t* stream,
    unsigned int flags,
    int priority) noexcept {
  return api_call(function, [&] {
    check_not_null(stream, "stream");
    if (flags != orStreamDefault && flags != orStreamNonBlocking) {
      throw Failure(
          orErrorInvalidValue,
          "flags " + std::to_string(flags) +
              " are not orStreamDefault or orStreamNonBlocking");
    }
    Device& device = runtime().device(current_device());
    device.state().check();
    *stream = make_stream(
        streams(),
        device,
        std::clamp(priority, kGreatestPriority, kLeastPriority));
  });
}

} // namespace

void destroy_streams(Device& device) {
  for (auto* table : {&streams(), &thread_streams()}) {
    table->remove_if([&device](Stream& stream) {
      if (stream.device() != device.index() ||
          &stream == &device.default_stream()) {
        return false;
      }
      device.destroy_stream(stream);
      return true;
    });
  }
}

std::size_t live_stream_count() {
  return streams().live_count() - g_default_handles;
}

Stream& stream_of(orStream_t stream) {
  if (Stream* object = streams().find_object(stream)) [[likely]] {
    return *object;
  }
  if (stream == nullptr) {
    return runtime().device(current_device()).default_stream();
  }
  if (stream == orStreamPerThread) {
    return thread_stream();
  }
  return streams().get(stream, "stream");
}

} // namespace openreg

using openreg::api_call;
using openreg::check_not_null;
using openreg::Failure;
using openreg::stream_of;

extern "C" {

orError_t orStreamCreate(orStream_t* stream) noexcept {
  return openreg::create_stream(
      "orStreamCreate", stream, orStreamDefault, openreg::kLeastPriority);
}

orError_t orStreamCreateWithPriority(
    orStream_t* stream,
    unsigned int flags,
    int priority) noexcept {
  return openreg::create_stream(
      "orStreamCreateWithPriority", stream, flags, priority);
}

orError_t orStreamDestroy(orStream_t stream) noexcept {
  return api_call("orStreamDestroy", [&] {
    if (stream == orStreamPerThread) {
      openreg::runtime();
      throw Failure(
          orErrorInvalidHandle,
          "stream is orStreamPerThread, which ends with its thread");
    }
    openreg::Stream& object = stream_of(stream);
    auto& device = openreg::runtime().device(object.device());
    if (&object == &device.default_stream()) {
      throw Failure(
          orErrorInvalidHandle, "stream is the default stream of its device");
    }
    openreg::streams().remove(stream, "stream");
    device.destroy_stream(object);
  });
}

orError_t orStreamGetDefault(orStream_t* stream, int device) noexcept {
  return api_call("orStreamGetDefault", [&] {
    check_not_null(stream, "stream");
    *stream = openreg::default_handle(device);
  });
}

orError_t orStreamQuery(orStream_t stream) noexcept {
  orError_t result = orSuccess;
  const orError_t error = api_call("orStreamQuery", [&] {
    openreg::Stream& object = stream_of(stream);
    const auto resets = object.check_usable();
    if (!object.idle()) {
      result = openreg::not_ready(
          "orStreamQuery: work of the stream is still queued or running");
      return;
    }
    object.check_usable_since(resets); // a lost device drops the work
    if (auto failure = object.failure()) {
      throw Failure(std::move(*failure));
    }
  });
  return error == orSuccess ? result : error;
}

orError_t orStreamGetProgress(
    orStream_t stream,
    uint64_t* given,
    uint64_t* done) noexcept {
  return api_call("orStreamGetProgress", [&] {
    check_not_null(given, "given");
    check_not_null(done, "done");
    std::tie(*given, *done) = stream_of(stream).progress();
  });
}

orError_t orStreamRunsHere(orStream_t stream, int* here) noexcept {
  return api_call("orStreamRunsHere", [&] {
    check_not_null(here, "here");
    *here = stream_of(stream).runs_here() ? 1 : 0;
  });
}

orError_t orStreamSynchronize(orStream_t stream) noexcept {
  return api_call("orStreamSynchronize", [&] {
    openreg::Stream& object = stream_of(stream);
    const auto resets = object.check_usable();
    object.drain(object.deadline());
    if (openreg::MemoryPools::any_spares()) {
      openreg::runtime().device(object.device()).trim_pools();
    }
    object.check_usable_since(resets);
    if (auto failure = object.take_failure()) {
      throw Failure(std::move(*failure));
    }
  });
}

orError_t orStreamWaitEvent(
    orStream_t stream,
    orEvent_t event,
    unsigned int flags) noexcept {
  return api_call("orStreamWaitEvent", [&] {
    openreg::check_no_flags(flags);
    openreg::Stream& object = stream_of(stream);
    const auto point = openreg::event_of(event).last();
    object.wait(point, object.check_usable());
  });
}

orError_t orStreamGetPriority(orStream_t stream, int* priority) noexcept {
  return api_call("orStreamGetPriority", [&] {
    check_not_null(priority, "priority");
    *priority = stream_of(stream).priority();
  });
}

orError_t orStreamGetDevice(orStream_t stream, int* device) noexcept {
  return api_call("orStreamGetDevice", [&] {
    check_not_null(device, "device");
    *device = stream_of(stream).device();
  });
}

orError_t orDeviceGetStreamPriorityRange(
    int* leastPriority,
    int* greatestPriority) noexcept {
  return api_call("orDeviceGetStreamPriorityRange", [&] {
    check_not_null(leastPriority, "leastPriority");
    check_not_null(greatestPriority, "greatestPriority");
    *leastPriority = openreg::kLeastPriority;
    *greatestPriority = openreg::kGreatestPriority;
  });
}

orError_t orLaunchKernel(
    orStream_t stream,
    orKernel_t kernel,
    void* args,
    orKernel_t cleanup) noexcept {
  return api_call("orLaunchKernel", [&] {
    check_not_null(reinterpret_cast<const void*>(kernel), "kernel");
    openreg::Stream& object = stream_of(stream);
    object.enqueue(
        openreg::Launch{kernel, args, cleanup}, object.check_usable());
  });
}

orError_t
orLaunchHostFunc(orStream_t stream, orHostFn_t fn, void* userData) noexcept {
  return api_call("orLaunchHostFunc", [&] {
    check_not_null(reinterpret_cast<const void*>(fn), "fn");
    openreg::Stream& object = stream_of(stream);
    object.call({fn, userData}, object.check_usable());
  });
}

orError_t orLaunchKernelBlocking(
    orStream_t stream,
    orKernel_t kernel,
    void* args) noexcept {
  return api_call("orLaunchKernelBlocking", [&] {
    check_not_null(reinterpret_cast<const void*>(kernel), "kernel");
    openreg::Stream& object = stream_of(stream);
    object.run(openreg::Launch{kernel, args, nullptr}, object.check_usable());
  });
}

} // extern "C"
