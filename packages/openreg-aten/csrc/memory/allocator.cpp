// SPDX-License-Identifier: BSD-3-Clause
// The allocator that PyTorch calls, with a block pool per device.
#include "memory/allocator.h"

#include "base/keys.h"
#include "base/mechanism.h"
#include "device/device.h"
#include "device/error.h"
#include "device/gil.h"
#include "device/trace.h"
#include "memory/allocator_settings.h"
#include "memory/block_pool.h"
#include "memory/size_classes.h"
#include "stream/all_streams.h"
#include "stream/bytes.h"
#include "stream/capture.h"
#include "stream/launch.h"
#include "stream/pace.h"
#include "stream/stream.h"
#include "stream/stream_event.h"
#include "stream/unwritten.h"

#include <c10/core/AllocatorConfig.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

namespace openreg::aten {
namespace {

/// Takes the blocks of a thread, of a stream or of all from a pool.
struct Route {
  c10::MempoolId_t pool;
  c10::MempoolId_t capture; // the pool of the graph that was captured then
  std::optional<std::thread::id> thread;
  std::optional<orStream_t> stream;
};

struct DeviceMemory {
  explicit DeviceMemory(c10::DeviceIndex device) : pool(device) {}
  std::mutex mutex;
  BlockPool pool;
  std::vector<Route> routes;
  std::unordered_set<void*> uncached; // blocks of the runtime
};

std::atomic<int> g_routes{0};            // of all devices
std::atomic<bool> g_caching{true};       // whether new blocks are cached
std::atomic<bool> g_had_uncached{false}; // whether there may be others
// Whether memory is filled; set before the first block is allocated.
bool g_fills_unwritten = false;

struct Observers {
  std::mutex mutex;
  std::vector<OutOfMemoryObserver> all;
};

Observers& observers() {
  static auto* value = new Observers;
  return *value;
}

std::vector<std::unique_ptr<DeviceMemory>>& memories() {
  static auto* value = [] {
    read_allocator_settings();
    g_fills_unwritten = fills_unwritten();
    auto* made = new std::vector<std::unique_ptr<DeviceMemory>>;
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
      made->push_back(std::make_unique<DeviceMemory>(index));
    }
    return made;
  }();
  return *value;
}

DeviceMemory& memory_of(c10::DeviceIndex device) {
  auto& all = memories();
  const auto index = static_cast<size_t>(device); // a negative one is too large
  if (C10_UNLIKELY(index >= all.size())) {
    check_device(device);
  }
  return *all[index];
}

/// Returns the device that owns a device pointer.
c10::DeviceIndex owner_of(const void* pointer) {
  struct Spans {
    const std::byte* begin;
    size_t size; // of each device
  };
  static const Spans spans = [] {
    const AddressRange& range = address_range();
    const auto all = static_cast<size_t>(range.end - range.begin);
    return Spans{range.begin, all / memories().size()};
  }();
  const auto offset =
      static_cast<size_t>(static_cast<const std::byte*>(pointer) - spans.begin);
  return static_cast<c10::DeviceIndex>(offset / spans.size);
}

size_t current_bytes(const c10::CachingAllocator::StatArray& stats) {
  return static_cast<size_t>(stats[0].current);
}

std::pair<size_t, size_t> memory_info(c10::DeviceIndex device) {
  const CurrentDevice scope(device);
  size_t free = 0;
  size_t total = 0;
  OPENREG_CHECK(orMemGetInfo(&free, &total));
  return {free, total};
}

[[noreturn]] void throw_out_of_memory(
    c10::DeviceIndex device,
    const BlockPool::Request& request,
    std::unique_lock<std::mutex> lock) {
  using c10::CachingAllocator::format_size;
  constexpr size_t kExbibyte = size_t{1} << 60;
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      !kIsCuda || request.size < kExbibyte,
      "CUDA out of memory. Tried to allocate more than 1EB memory.");
  BlockPool& pool = memory_of(device).pool;
  const size_t allocated = current_bytes(pool.stats().allocated_bytes);
  const size_t reserved = current_bytes(pool.stats().reserved_bytes);
  const auto allowed = pool.allowed();
  const auto [free, total] = memory_info(device);
  pool.note_out_of_memory(request, free);
  lock.unlock();
  const c10::Device where(kDeviceType, device);
  c10::reportOutOfMemoryToProfiler(
      static_cast<int64_t>(request.size), allocated, reserved, where);
  std::vector<OutOfMemoryObserver> notified;
  {
    const std::lock_guard observing(observers().mutex);
    notified = observers().all;
  }
  for (const auto& notify : notified) {
    notify(device, device_request(request.size), allowed.value_or(total), free);
  }
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      false,
      kErrorName,
      " out of memory. Tried to allocate ",
      format_size(device_request(request.size)),
      kIsCuda ? ". GPU " + std::to_string(device) : ". Device " + where.str(),
      " has a total capacity of ",
      format_size(total),
      " of which ",
      format_size(free),
      " is free. This process has ",
      format_size(total - free),
      " memory in use. ",
      allowed ? format_size(*allowed) + " allowed; " : "",
      "Of the allocated memory ",
      format_size(allocated),
      " is allocated by PyTorch, and ",
      format_size(reserved - allocated),
      " is reserved by PyTorch but unallocated. If reserved but unallocated "
      "memory is large try setting PYTORCH_ALLOC_CONF=max_split_size_mb:<MiB> "
      "to avoid fragmentation. Set OPENREG_DEVICE_MEMORY to simulate a larger "
      "device.");
}

/// Waits, without the lock, for the work that prevents the release of memory.
void wait_for_memory(DeviceMemory& memory, std::unique_lock<std::mutex>& lock) {
  if (captures_underway()) {
    return; // an event on a captured stream never completes
  }
  std::vector<StreamEvent> ends;
  for (orStream_t stream : memory.pool.busy_streams()) {
    ends.emplace_back(stream);
  }
  lock.unlock();
  {
    const GilRelease without_gil;
    for (const StreamEvent& end : ends) {
      end.wait();
    }
  }
  lock.lock();
}

/// Copies within a device, in the order of its current stream. Runs on the
/// calling thread if pace::decide() decides so, as for an operator.
void copy_within(
    c10::DeviceIndex device,
    void* dst,
    const void* src,
    size_t count) {
  const auto verdict =
      pace::decide(device, pace::Place::kAny, count, /*may_raise=*/false);
  if (!kernels_reach_memory() || verdict != pace::Verdict::kRun) {
    return enqueue_copy(device, dst, src, count);
  }
  orLaunchInfo info = OPENREG_LAUNCH_INFO_INIT;
  info.name = "memcpy";
  info.kind = orActivityMemcpy;
  info.direction = orMemcpyDeviceToDevice;
  info.hostMemory = orMemoryTypeDevice;
  info.bytes = count;
  run_on_current_stream(
      device,
      [&] { std::memcpy(to_kernel(dst), to_kernel(src), count); },
      &info);
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    const c10::DeviceIndex device = current_device();
    return own_block(device, allocate_block(device, size));
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &free_block;
  }
  void copy_data(void* dst, const void* src, std::size_t count) const override {
    copy_within(current_device(), dst, src, count);
  }

  bool initialized() override {
    return is_initialized();
  }
  void emptyCache(c10::MempoolId_t pool) override {
    const StackContext context = gather_context(RecordContext::ALL);
    for (auto& memory : memories()) {
      std::unique_lock lock(memory->mutex);
      wait_for_memory(*memory, lock);
      memory->pool.release_cached(context, pool);
    }
  }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    TORCH_CHECK(
        stream.device_type() == kDeviceType,
        "record_stream: expected a stream of device type ",
        kDeviceType,
        ", got a stream of device type ",
        stream.device_type());
    if (is_device_pointer(data.get())) {
      DeviceMemory& memory = memory_of(owner_of(data.get()));
      const std::lock_guard lock(memory.mutex);
      memory.pool.record_use(data.get(), handle_of(stream));
    }
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(
      c10::DeviceIndex device) override {
    DeviceMemory& memory = memory_of(device);
    const std::lock_guard lock(memory.mutex);
    auto stats = memory.pool.stats();
    using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
    stats.max_split_size = static_cast<int64_t>(Config::max_split_size());
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    for_each_stat(device, [](auto& stat) { stat.reset_accumulated(); });
    DeviceMemory& memory = memory_of(device);
    const std::lock_guard lock(memory.mutex);
    auto& stats = memory.pool.stats();
    stats.num_alloc_retries = 0;
    stats.num_ooms = 0;
    stats.num_sync_all_streams = 0;
    stats.num_device_alloc = 0;
    stats.num_device_free = 0;
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    for_each_stat(device, [](auto& stat) { stat.reset_peak(); });
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    return memory_info(device);
  }

 private:
  template <typename Change>
  void for_each_stat(c10::DeviceIndex device, const Change& change) {
    DeviceMemory& memory = memory_of(device);
    const std::lock_guard lock(memory.mutex);
    auto& stats = memory.pool.stats();
    for (auto* array :
         {&stats.allocation,
          &stats.segment,
          &stats.active,
          &stats.inactive_split,
          &stats.allocated_bytes,
          &stats.reserved_bytes,
          &stats.active_bytes,
          &stats.inactive_split_bytes,
          &stats.requested_bytes}) {
      std::for_each(array->begin(), array->end(), change);
    }
    change(stats.oversize_allocations);
    change(stats.oversize_segments);
  }
};

void report(
    void* pointer,
    int64_t change,
    c10::DeviceIndex device,
    const BlockCounts& stats) {
  if (C10_UNLIKELY(c10::memoryProfilingEnabled())) {
    c10::reportMemoryUsageToProfiler(
        pointer,
        change,
        current_bytes(stats.allocated_bytes),
        current_bytes(stats.reserved_bytes),
        c10::Device(kDeviceType, device));
  }
}

/// Reports allocations and frees to Python. Kernels on stream workers are
/// excluded: they free their own memory, and no other code sees it.
void trace_memory(
    void (c10::impl::PyInterpreterVTable::*event)(c10::DeviceType, uintptr_t)
        const,
    void* pointer) {
  if (C10_UNLIKELY(c10::impl::GPUTrace::get_trace() != nullptr) &&
      is_python_thread()) {
    trace(event, trace_id(pointer));
  }
}

/// Returns the route that applies: the last that was begun.
std::optional<Route> route_of(DeviceMemory& memory, orStream_t stream) {
  const auto thread = std::this_thread::get_id();
  const std::lock_guard lock(memory.mutex);
  const auto found = std::find_if(
      memory.routes.rbegin(), memory.routes.rend(), [&](const Route& each) {
        return each.thread.value_or(thread) == thread &&
            each.stream.value_or(stream) == stream;
      });
  return found == memory.routes.rend() ? std::nullopt : std::optional(*found);
}

/// Returns the pool of the graph that a stream is captured for, or {0, 0}.
c10::MempoolId_t captured_pool(orStream_t stream) {
  if (captures_underway()) {
    if (const auto capture = capture_of(stream)) {
      return capture->pool();
    }
  }
  return {};
}

/// Of a graph and a route, the one that was begun last decides, as on CUDA.
c10::MempoolId_t
pool_for(DeviceMemory& memory, orStream_t stream, BlockPool::User user) {
  const c10::MempoolId_t captured = user == BlockPool::User::kWork
      ? captured_pool(stream)
      : c10::MempoolId_t();
  if (C10_UNLIKELY(g_routes.load(std::memory_order_acquire) > 0)) {
    const auto route = route_of(memory, stream);
    if (route && route->capture == captured) {
      return route->pool;
    }
  }
  return captured;
}

/// Fills a block that work on the stream will use.
void fill_new(const BlockPool::Request& request, void* pointer, size_t size) {
  const orError_t error =
      enqueue_unwritten(request.stream, request.pool, pointer, size);
  try {
    OPENREG_CHECK(error);
  } catch (...) {
    free_block(pointer);
    throw;
  }
}

void* allocate_uncached(
    c10::DeviceIndex device,
    const BlockPool::Request& request) {
  DeviceMemory& memory = memory_of(device);
  void* pointer = nullptr;
  const orError_t error = [&] {
    const CurrentDevice scope(device);
    return orMalloc(&pointer, request.size);
  }();
  std::unique_lock lock(memory.mutex);
  if (error == orErrorMemoryAllocation) {
    throw_out_of_memory(device, request, std::move(lock));
  }
  OPENREG_CHECK(error);
  memory.uncached.insert(pointer);
  g_had_uncached = true;
  lock.unlock();
  if (C10_UNLIKELY(g_fills_unwritten) &&
      request.user == BlockPool::User::kWork) {
    fill_new(request, pointer, request.size);
  }
  return pointer;
}

/// Frees a block of allocate_uncached(). Returns false for all other blocks.
bool free_uncached(DeviceMemory& memory, void* pointer) {
  {
    const std::lock_guard lock(memory.mutex);
    if (memory.uncached.erase(pointer) == 0) {
      return false;
    }
  }
  const GilRelease without_gil; // pending work may need it
  const orError_t error = orFree(pointer);
  if (error != orSuccess) {
    warn_runtime_error(error);
  }
  return true;
}

/// Fills a block that is about to be freed if its device is idle. Otherwise
/// work that was enqueued before the free may still use it, on any stream, and
/// it is filled when it is allocated again.
void fill_freed(
    c10::DeviceIndex device,
    DeviceMemory& memory,
    void* pointer) noexcept {
  try {
    if (captures_underway() || !all_streams_are_idle(device)) {
      return;
    }
    std::unique_lock lock(memory.mutex);
    const auto block = memory.pool.find(pointer);
    lock.unlock();
    if (block) {
      write_unwritten(to_kernel(pointer), block->size);
    }
  } catch (const std::bad_alloc&) {
    return; // it is filled when it is allocated again
  }
}

void* allocate(c10::DeviceIndex device, size_t size, BlockPool::User user) {
  if (size == 0) {
    return nullptr;
  }
  DeviceMemory& memory = memory_of(device);
  const orStream_t stream = current_handle(device);
  const BlockPool::Request request{
      size,
      stream,
      user,
      pool_for(memory, stream, user),
      gather_context(RecordContext::STATE)};
  if (C10_UNLIKELY(!g_caching.load(std::memory_order_relaxed)) &&
      user != BlockPool::User::kKernel) {
    return allocate_uncached(device, request);
  }
  std::unique_lock lock(memory.mutex);
  BlockPool::Allocation allocation = memory.pool.allocate(request);
  if (C10_UNLIKELY(allocation.pointer == nullptr)) {
    // The work may itself wait for this kernel, so a kernel must not wait for
    // it.
    if (user != BlockPool::User::kKernel) {
      wait_for_memory(memory, lock);
    }
    allocation = memory.pool.allocate_after_release(request);
  }
  if (C10_UNLIKELY(allocation.pointer == nullptr)) {
    throw_out_of_memory(device, request, std::move(lock));
  }
  report(
      allocation.pointer,
      static_cast<int64_t>(allocation.size),
      device,
      memory.pool.stats());
  lock.unlock();
  trace_memory(
      &c10::impl::PyInterpreterVTable::trace_gpu_memory_allocation,
      allocation.pointer);
  if (C10_UNLIKELY(g_fills_unwritten) && user == BlockPool::User::kWork) {
    fill_new(request, allocation.pointer, allocation.size);
  }
  return allocation.pointer;
}

/// Returns the id of a stream as an address, as PyTorch's snapshots show it.
void* id_of(c10::DeviceIndex device, void* stream) {
  const orStream_t handle = handle_of(default_stream(device));
  return stream == static_cast<void*>(handle) ? nullptr : stream;
}

} // namespace

c10::DeviceAllocator& device_allocator() {
  static auto* value = new Allocator;
  return *value;
}

void* allocate_block(c10::DeviceIndex device, size_t size) {
  return allocate(device, size, BlockPool::User::kWork);
}

void* allocate_idle_block(c10::DeviceIndex device, size_t size) {
  return allocate(device, size, BlockPool::User::kCaller);
}

void* allocate_kernel_block(c10::DeviceIndex device, size_t size) {
  return allocate(device, size, BlockPool::User::kKernel);
}

c10::MempoolId_t new_graph_pool() {
  static std::atomic<uint64_t> last{0};
  return {++last, 0};
}

void retain_graph_pool(const c10::MempoolId_t& pool) {
  for (auto& memory : memories()) {
    const std::lock_guard lock(memory->mutex);
    memory->pool.retain(pool);
  }
}

void release_graph_pool(const c10::MempoolId_t& pool, orStream_t last) {
  for (auto& memory : memories()) {
    const std::lock_guard lock(memory->mutex);
    memory->pool.release(pool, last);
  }
}

void retain_pool(c10::DeviceIndex device, const c10::MempoolId_t& pool) {
  DeviceMemory& memory = memory_of(device);
  const std::lock_guard lock(memory.mutex);
  memory.pool.retain(pool);
}

void release_pool(c10::DeviceIndex device, const c10::MempoolId_t& pool) {
  DeviceMemory& memory = memory_of(device);
  const std::lock_guard lock(memory.mutex);
  TORCH_CHECK(
      memory.pool.uses(pool) > 0,
      "memory pool (",
      pool.first,
      ", ",
      pool.second,
      ") has no users to release");
  memory.pool.release(pool, /*last=*/nullptr);
}

int pool_uses(c10::DeviceIndex device, const c10::MempoolId_t& pool) {
  DeviceMemory& memory = memory_of(device);
  const std::lock_guard lock(memory.mutex);
  return memory.pool.uses(pool);
}

void set_pool_rules(
    c10::DeviceIndex device,
    const c10::MempoolId_t& pool,
    const PoolRules& rules) {
  DeviceMemory& memory = memory_of(device);
  const std::lock_guard lock(memory.mutex);
  memory.pool.set_rules(pool, rules);
}

void begin_allocate_to_pool(
    c10::DeviceIndex device,
    const c10::MempoolId_t& pool,
    Routed routed) {
  DeviceMemory& memory = memory_of(device);
  const orStream_t stream = current_handle(device);
  Route route{pool, captured_pool(stream), std::nullopt, std::nullopt};
  if (routed == Routed::kThread) {
    route.thread = std::this_thread::get_id();
  } else if (routed == Routed::kStream) {
    route.stream = stream;
  }
  const std::lock_guard lock(memory.mutex);
  for (const Route& each : memory.routes) {
    TORCH_CHECK(
        each.pool != pool,
        "beginAllocateToPool: already recording to mempool_id");
  }
  memory.pool.retain(pool);
  memory.routes.push_back(route);
  g_routes.fetch_add(1, std::memory_order_release);
}

void end_allocate_to_pool(
    c10::DeviceIndex device,
    const c10::MempoolId_t& pool) {
  DeviceMemory& memory = memory_of(device);
  const std::lock_guard lock(memory.mutex);
  const auto removed = std::erase_if(
      memory.routes, [&pool](const Route& each) { return each.pool == pool; });
  TORCH_CHECK(
      removed > 0, "endAllocatePool: not currently recording to mempool_id");
  g_routes.fetch_sub(static_cast<int>(removed), std::memory_order_release);
}

PoolState pool_state(c10::DeviceIndex device, const c10::MempoolId_t& pool) {
  DeviceMemory& memory = memory_of(device);
  const std::lock_guard lock(memory.mutex);
  PoolState state = memory.pool.state_of(pool);
  TORCH_CHECK(
      !state.segments.empty() || memory.pool.uses(pool) > 0,
      "Could not find pool of id (",
      pool.first,
      ", ",
      pool.second,
      ") on device ",
      static_cast<int>(device));
  return state;
}

RestoredPool restore_pool(c10::DeviceIndex device, const PoolState& state) {
  DeviceMemory& memory = memory_of(device);
  const StackContext context = gather_context(RecordContext::ALL);
  const std::lock_guard lock(memory.mutex);
  return memory.pool.restore(state, context);
}

void set_caching(bool caches) {
  g_caching = caches;
}

bool is_caching() {
  return g_caching.load(std::memory_order_relaxed);
}

void observe_out_of_memory(OutOfMemoryObserver observer) {
  const std::lock_guard lock(observers().mutex);
  observers().all.push_back(std::move(observer));
}

void free_block(void* pointer) noexcept {
  if (pointer == nullptr || in_bad_fork()) {
    return; // a forked child must not free its parent's memory
  }
  trace_memory(
      &c10::impl::PyInterpreterVTable::trace_gpu_memory_deallocation, pointer);
  const c10::DeviceIndex device = owner_of(pointer);
  DeviceMemory& memory = memory_of(device);
  if (C10_UNLIKELY(g_had_uncached.load(std::memory_order_relaxed)) &&
      free_uncached(memory, pointer)) {
    return;
  }
  if (C10_UNLIKELY(g_fills_unwritten)) {
    fill_freed(device, memory, pointer);
  }
  const StackContext context = gather_context(RecordContext::ALL);
  const std::lock_guard lock(memory.mutex);
  const size_t size = memory.pool.free(pointer, context);
  report(pointer, -static_cast<int64_t>(size), device, memory.pool.stats());
}

void abandon_memory(c10::DeviceIndex device) {
  DeviceMemory& memory = memory_of(device);
  const std::lock_guard lock(memory.mutex);
  memory.pool.abandon();
  memory.uncached.clear();
}

std::optional<BlockInfo> find_block(void* pointer) {
  if (!is_device_pointer(pointer)) {
    return std::nullopt;
  }
  DeviceMemory& memory = memory_of(owner_of(pointer));
  const std::lock_guard lock(memory.mutex);
  return memory.pool.find(pointer);
}

void set_memory_fraction(c10::DeviceIndex device, double fraction) {
  DeviceMemory& memory = memory_of(device);
  const auto total = static_cast<double>(memory_info(device).second);
  const std::lock_guard lock(memory.mutex);
  memory.pool.set_allowed(static_cast<size_t>(fraction * total));
}

double memory_fraction(c10::DeviceIndex device) {
  DeviceMemory& memory = memory_of(device);
  const auto total = static_cast<double>(memory_info(device).second);
  const std::lock_guard lock(memory.mutex);
  const auto allowed = memory.pool.allowed();
  return allowed ? static_cast<double>(*allowed) / total : 1;
}

void record_memory_history(
    const std::optional<HistorySettings>& settings,
    bool clear) {
  set_recorded_context(RecordContext::NEVER, false);
  for (auto& memory : memories()) {
    const std::lock_guard lock(memory->mutex);
    MemoryTrace& trace = memory->pool.trace();
    if (!settings || clear) {
      trace.stop();
    }
    if (settings) {
      trace.start(*settings);
    }
  }
  if (settings) {
    set_recorded_context(settings->context, settings->cpp_stacks);
  }
}

MemorySnapshot memory_snapshot() {
  MemorySnapshot result;
  c10::DeviceIndex device = 0;
  for (auto& memory : memories()) {
    const std::lock_guard lock(memory->mutex);
    for (auto& segment : memory->pool.snapshot()) {
      segment.stream = id_of(device, segment.stream);
      result.segments.push_back(std::move(segment));
    }
    auto& trace = result.traces.emplace_back(memory->pool.trace().entries());
    for (TraceEntry& entry : trace) {
      entry.stream_ = id_of(device, entry.stream_);
    }
    ++device;
  }
  return result;
}

void resize_storage(const c10::Storage& storage, size_t size) {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  TORCH_CHECK(
      impl->resizable(), "Trying to resize storage that is not resizable");
  const c10::DeviceIndex device = storage.device().index();
  c10::DataPtr data = own_block(device, allocate_block(device, size));
  const size_t kept = std::min(size, impl->nbytes());
  if (kept > 0) {
    copy_within(device, data.get(), impl->data(), kept);
  }
  impl->set_data_ptr_noswap(std::move(data));
  impl->set_nbytes(size);
}

OPENREG_MECHANISM(
    allocator,
    "c10::DeviceAllocator, c10::SetAllocator",
    "torch.UntypedStorage crashes; no memory statistics or empty_cache") {
  c10::SetAllocator(kDeviceType, &device_allocator());
  register_allocator_settings();
}

} // namespace openreg::aten
