// SPDX-License-Identifier: BSD-3-Clause
// Current streams per thread, and the stream pool.
#include "stream/stream.h"

#include "base/keys.h"
#include "base/thread_local.h"
#include "device/activity.h"
#include "device/device.h"
#include "device/error.h"
#include "device/gil.h"
#include "device/host_wait.h"
#include "device/trace.h"
#include "stream/all_streams.h"
#include "stream/captures.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <vector>

namespace openreg::aten {
namespace {

constexpr std::size_t kStreamsPerPriority = 32;

struct Pool {
  int greatest = 0;
  std::mutex mutex;
  struct Ring {
    std::vector<c10::StreamId> streams;
    std::size_t next = 0;
  };
  std::vector<Ring> rings; // one per priority, the lowest first
};

struct Devices {
  std::vector<orStream_t> defaults;
  std::vector<std::unique_ptr<Pool>> pools;
};

const Devices& devices() {
  static const Devices* value = [] {
    auto made = std::make_unique<Devices>();
    int least = 0;
    int greatest = 0;
    OPENREG_CHECK(orDeviceGetStreamPriorityRange(&least, &greatest));
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
      orStream_t stream = nullptr;
      OPENREG_CHECK(orStreamGetDefault(&stream, index));
      made->defaults.push_back(stream);
      auto pool = std::make_unique<Pool>();
      pool->greatest = greatest;
      pool->rings.resize(static_cast<std::size_t>(least - greatest + 1));
      made->pools.push_back(std::move(pool));
    }
    return made.release();
  }();
  return *value;
}

// The current streams of this thread. Devices past its end use the default
// stream.
thread_local std::vector<c10::StreamId> t_current;
// False until the thread chooses a stream. This avoids reading the vector,
// whose destructor makes access slower.
OPENREG_THREAD_LOCAL bool t_has_chosen = false;

c10::Stream make_stream(c10::DeviceIndex device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, device), id);
}

c10::StreamId current_id(c10::DeviceIndex device) {
  if (C10_LIKELY(!t_has_chosen)) {
    return 0;
  }
  const auto index = static_cast<std::size_t>(device);
  return index < t_current.size() ? t_current[index] : 0;
}

orStream_t handle_of(c10::DeviceIndex device, c10::StreamId id) {
  if (id == 0) {
    return devices().defaults.at(static_cast<std::size_t>(device));
  }
  return reinterpret_cast<orStream_t>(id);
}

// A stream that this thread found idle, and how many commands its device had
// enqueued then.
struct IdleStream {
  orStream_t stream;
  uint64_t enqueued;
};
OPENREG_THREAD_LOCAL IdleStream t_idle{};

/// Returns the number of commands that the streams of a device have received.
uint64_t count_enqueued(c10::DeviceIndex device) {
  static std::array<std::atomic<const uint64_t*>, 64> counters;
  auto& counter = counters.at(static_cast<size_t>(device));
  const uint64_t* found = counter.load(std::memory_order_acquire);
  if (C10_UNLIKELY(found == nullptr)) {
    OPENREG_CHECK(orDeviceGetEnqueueCounter(&found, device));
    counter.store(found, std::memory_order_release);
  }
  return __atomic_load_n(found, __ATOMIC_ACQUIRE);
}

} // namespace

c10::Stream current_stream(c10::DeviceIndex device) {
  const auto count = devices().defaults.size();
  if (device >= 0 && static_cast<std::size_t>(device) < count) {
    // Does not call the runtime: autograd calls this function where exceptions
    // are not allowed, also in forked children.
    return make_stream(device, current_id(device));
  }
  const c10::DeviceIndex index = index_or_current(device);
  return make_stream(index, current_id(index));
}

c10::Stream default_stream(c10::DeviceIndex device) {
  return make_stream(index_or_current(device), 0);
}

void check_stream(const c10::Stream& stream) {
  const c10::Device device = stream.device();
  TORCH_CHECK(
      device.type() == kDeviceType,
      "expected a stream on device type ",
      kDeviceType,
      ", but got a stream on ",
      device);
  check_device(device.index());
  int owner = 0;
  OPENREG_CHECK(orStreamGetDevice(handle_of(stream), &owner));
  TORCH_CHECK(
      owner == device.index(),
      "stream ",
      stream.id(),
      " belongs to device ",
      c10::Device(kDeviceType, static_cast<c10::DeviceIndex>(owner)),
      ", not to ",
      device);
}

c10::Stream external_stream(c10::DeviceIndex device, orStream_t handle) {
  const c10::DeviceIndex index = index_or_current(device);
  if (handle == handle_of(index, 0)) {
    handle = nullptr; // PyTorch's id of the default stream is 0
  }
  c10::Stream stream =
      make_stream(index, reinterpret_cast<c10::StreamId>(handle));
  check_stream(stream);
  return stream;
}

int priority_of(const c10::Stream& stream) {
  int priority = 0;
  OPENREG_CHECK(orStreamGetPriority(handle_of(stream), &priority));
  return priority;
}

c10::Stream exchange_stream(c10::Stream stream) {
  check_stream(stream);
  const c10::DeviceIndex device = stream.device_index();
  const auto index = static_cast<std::size_t>(device);
  const c10::StreamId previous = current_id(device);
  if (index >= t_current.size()) {
    t_current.resize(index + 1, 0);
    t_has_chosen = true;
  }
  t_current[index] = stream.id();
  return make_stream(device, previous);
}

c10::Stream stream_from_pool(c10::DeviceIndex device, int priority) {
  const c10::DeviceIndex index = index_or_current(device);
  Pool& pool = *devices().pools[static_cast<std::size_t>(index)];
  const int clamped = std::clamp(priority, pool.greatest, 0);
  const std::lock_guard lock(pool.mutex);
  auto& ring = pool.rings[static_cast<std::size_t>(-clamped)];
  if (ring.streams.size() < kStreamsPerPriority) {
    const CurrentDevice scope(index);
    orStream_t stream = nullptr;
    OPENREG_CHECK(orStreamCreateWithPriority(&stream, 0, clamped));
    ring.streams.push_back(reinterpret_cast<c10::StreamId>(stream));
    return make_stream(index, ring.streams.back());
  }
  return make_stream(index, ring.streams[ring.next++ % kStreamsPerPriority]);
}

void forget_streams(c10::DeviceIndex device) {
  const auto index = static_cast<std::size_t>(device);
  Pool& pool = *devices().pools.at(index);
  const std::lock_guard lock(pool.mutex);
  for (Pool::Ring& ring : pool.rings) {
    ring = {};
  }
  if (index < t_current.size()) {
    t_current[index] = 0;
  }
}

void synchronize_current_stream(c10::DeviceIndex device) {
  const orStream_t stream = current_handle(device);
  if (kIsCuda) { // as CUDA does for item() and copies to the host
    trace(
        &c10::impl::PyInterpreterVTable::trace_gpu_stream_synchronization,
        trace_id(stream));
  }
  note_host_wait();
  // An idle stream needs no wait and no GIL release. A recorded wait must call
  // the runtime, and a query of a captured stream would change the error, as it
  // does for captures of the program's own.
  if (C10_LIKELY(
          !records_activity() && !captures_underway() && !is_busy(device) &&
          orStreamQuery(stream) == orSuccess)) {
    return;
  }
  const GilRelease without_gil; // the work may need it
  OPENREG_CHECK(orStreamSynchronize(stream));
}

namespace {

std::vector<orStream_t> all_handles(c10::DeviceIndex index) {
  std::vector<orStream_t> handles{handle_of(index, 0)};
  Pool& pool = *devices().pools[static_cast<std::size_t>(index)];
  const std::lock_guard lock(pool.mutex);
  for (const Pool::Ring& ring : pool.rings) {
    for (const c10::StreamId id : ring.streams) {
      handles.push_back(handle_of(index, id));
    }
  }
  return handles;
}

} // namespace

bool is_idle(orStream_t stream) {
  uint64_t enqueued = 0;
  uint64_t completed = 0;
  return orStreamGetProgress(stream, &enqueued, &completed) == orSuccess &&
      enqueued == completed;
}

bool all_streams_are_idle(c10::DeviceIndex device) {
  const auto handles = all_handles(index_or_current(device));
  return std::all_of(handles.begin(), handles.end(), is_idle);
}

void wait_for_all_streams(c10::DeviceIndex device) {
  const auto handles = all_handles(index_or_current(device));
  const GilRelease without_gil;
  note_host_wait();
  for (orStream_t handle : handles) {
    orEvent_t event = nullptr;
    OPENREG_CHECK(orEventCreateWithFlags(&event, orEventDisableTiming));
    orError_t error = orEventRecord(event, handle);
    if (error == orSuccess) {
      error = orEventSynchronize(event);
    }
    static_cast<void>(orEventDestroy(event));
    OPENREG_CHECK(error);
  }
}

orStream_t handle_of(const c10::Stream& stream) {
  return handle_of(stream.device_index(), stream.id());
}

orStream_t current_handle(c10::DeviceIndex device) {
  return handle_of(device, current_id(device));
}

bool is_busy(c10::DeviceIndex device) {
  const orStream_t stream = current_handle(device);
  const uint64_t count = count_enqueued(device);
  if (C10_LIKELY(t_idle.stream == stream && t_idle.enqueued == count)) {
    return false;
  }
  uint64_t enqueued = 0;
  uint64_t completed = 0;
  OPENREG_CHECK(orStreamGetProgress(stream, &enqueued, &completed));
  if (enqueued != completed) {
    return true;
  }
  t_idle = {stream, count};
  return false;
}

void note_inline_run(c10::DeviceIndex device) {
  // A part of another command is not counted.
  if (C10_LIKELY(
          t_idle.stream == current_handle(device) &&
          t_idle.enqueued + 1 == count_enqueued(device))) {
    ++t_idle.enqueued;
  }
}

bool runs_here(c10::DeviceIndex device) {
  int here = 0;
  OPENREG_CHECK(orStreamRunsHere(current_handle(device), &here));
  return here != 0;
}

} // namespace openreg::aten
