// SPDX-License-Identifier: BSD-3-Clause
// The streams of programs and threads.
#include "device/stream_handles.h"

#include "base/device_number.h"
#include "base/error.h"
#include "base/handle_table.h"
#include "base/process.h"
#include "base/thread_local.h"
#include "device/runtime.h"
#include "platform/thread.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace openreg {
namespace {

using Streams = HandleTable<Stream, orStream_t, HandleKind::kStream>;

Streams& streams() {
  static auto* value = new Streams;
  return *value;
}

std::atomic<std::size_t> g_default_handles{0};

/// The per-thread streams, separate from the streams of the program. Only the
/// thread gets their handles, which end with the thread or with a reset.
Streams& thread_streams() {
  static auto* value = new Streams;
  return *value;
}

/// Creates a stream of the device and returns its handle.
orStream_t make_stream(Streams& table, Device& device, int priority) {
  Stream& stream = device.create_stream(priority);
  try {
    return table.insert(&stream);
  } catch (...) {
    device.destroy_stream(stream);
    throw;
  }
}

/// The streams behind orStreamPerThread of one thread.
class ThreadStreams {
 public:
  ThreadStreams() = default;
  ThreadStreams(const ThreadStreams&) = delete;
  ThreadStreams& operator=(const ThreadStreams&) = delete;
  ~ThreadStreams() {
    for (const orStream_t handle : handles_) {
      // Null if a device has none, or if a reset has ended it.
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

/// Ends a thread's streams after its thread_local variables, which may use
/// them. A forked child has none, and the main thread keeps its streams at
/// process exit.
const platform::ThreadEnd& thread_end() {
  static const platform::ThreadEnd end = [] {
    platform::ThreadEnd made;
    const platform::Result result = platform::ThreadEnd::make(
        [](void*) {
          if (!process::in_bad_fork()) {
            delete std::exchange(t_streams, nullptr);
          }
        },
        made);
    if (!result) {
      throw Failure(
          orErrorMemoryAllocation,
          "orStreamPerThread needs a thread-specific key: " + result.text());
    }
    return made;
  }();
  return end;
}

Stream& thread_stream() {
  Device& device = runtime().device(current_device());
  if (t_streams == nullptr) {
    auto streams = std::make_unique<ThreadStreams>();
    if (!thread_end().set(streams.get())) {
      throw std::bad_alloc();
    }
    t_streams = streams.release();
  }
  return t_streams->of(device);
}

} // namespace

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

orStream_t make_stream(Device& device, int priority) {
  return make_stream(streams(), device, priority);
}

bool is_default(const Stream& stream) {
  return &stream == &runtime().device(stream.device()).default_stream();
}

void destroy_stream(orStream_t stream) {
  if (stream == orStreamPerThread) {
    runtime();
    throw Failure(
        orErrorInvalidHandle,
        "stream is orStreamPerThread, which its thread destroys when it ends");
  }
  Stream& object = stream_of(stream);
  if (is_default(object)) {
    throw Failure(
        orErrorInvalidHandle,
        "stream is the default stream of its device, which cannot be "
        "destroyed");
  }
  streams().remove(stream, "stream");
  runtime().device(object.device()).destroy_stream(object);
}

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
