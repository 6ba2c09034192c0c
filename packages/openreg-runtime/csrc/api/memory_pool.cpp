// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API for stream-ordered allocation.
#include "device/memory_pool.h"

#include "activity/recorder.h"
#include "base/error.h"
#include "base/struct_size.h"
#include "device/memory_ranges.h"
#include "device/runtime.h"
#include "device/stream_handles.h"
#include "failures/failure_injection.h"

#include <cstdint>
#include <string>

using namespace openreg;

namespace {

MemoryPool& known_pool(orMemPool_t pool) {
  runtime(); // its error goes before that of the handle
  return pool_of(pool);
}

Device& device_with(const MemoryPool& pool) {
  return runtime().device(pool.device);
}

MemoryPool& default_pool(Device& device) {
  return device.memory().with_pools(
      [](MemoryPools& all) -> MemoryPool& { return all.default_pool(); });
}

void* allocate(std::size_t size, MemoryPool* pool, Stream& stream) {
  Device& device =
      pool != nullptr ? device_with(*pool) : runtime().device(stream.device());
  stream.check_usable();
  stream.check_not_captured("a captured stream was given an allocation");
  device.state().check();
  if (size == 0) {
    return nullptr;
  }
  failure_injection::count_allocation(
      orFailureMalloc, device.index(), &device.state());
  return pool != nullptr
      ? device.memory().allocate_in_order(size, *pool, stream)
      : device.memory().allocate_in_order(size, stream);
}

/// The number that `attr` names. Throws orErrorInvalidValue.
std::uint64_t* number_of(MemoryPool& pool, orMemPoolAttr attr) {
  switch (attr) {
    case orMemPoolAttrReleaseThreshold:
      return &pool.threshold;
    case orMemPoolAttrReservedMemCurrent:
      return &pool.reserved;
    case orMemPoolAttrReservedMemHigh:
      return &pool.reserved_high;
    case orMemPoolAttrUsedMemCurrent:
      return &pool.used;
    case orMemPoolAttrUsedMemHigh:
      return &pool.used_high;
  }
  throw Failure(
      orErrorInvalidValue,
      "attr " + std::to_string(static_cast<int>(attr)) +
          " is not an orMemPoolAttr: expected 0 to 4");
}

void note_allocation(
    const Stream& stream,
    const void* block,
    std::size_t size) {
  if (block != nullptr) {
    activity::note_block(orActivityMalloc, stream.device(), block, size);
  }
}

void set_attribute(MemoryPool& pool, orMemPoolAttr attr, std::uint64_t value) {
  std::uint64_t& number = *number_of(pool, attr);
  switch (attr) {
    case orMemPoolAttrReleaseThreshold:
      number = value;
      return;
    case orMemPoolAttrReservedMemHigh:
    case orMemPoolAttrUsedMemHigh:
      if (value != 0) {
        throw Failure(
            orErrorInvalidValue,
            "value " + std::to_string(value) +
                " cannot be set as a high watermark: expected 0, which resets "
                "it");
      }
      number = attr == orMemPoolAttrUsedMemHigh ? pool.used : pool.reserved;
      return;
    default:
      throw Failure(
          orErrorInvalidValue,
          "attr " + std::to_string(static_cast<int>(attr)) +
              " is read-only: expected the release threshold or a high "
              "watermark");
  }
}

} // namespace

extern "C" {

orError_t
orMallocAsync(void** devPtr, size_t size, orStream_t stream) noexcept {
  return api_call("orMallocAsync", [&] {
    check_not_null(devPtr, "devPtr");
    *devPtr = nullptr;
    Stream& object = stream_of(stream);
    *devPtr = allocate(size, nullptr, object);
    note_allocation(object, *devPtr, size);
  });
}

orError_t orMallocFromPoolAsync(
    void** devPtr,
    size_t size,
    orMemPool_t pool,
    orStream_t stream) noexcept {
  return api_call("orMallocFromPoolAsync", [&] {
    check_not_null(devPtr, "devPtr");
    *devPtr = nullptr;
    Stream& object = stream_of(stream);
    *devPtr = allocate(size, &known_pool(pool), object);
    note_allocation(object, *devPtr, size);
  });
}

orError_t orFreeAsync(void* devPtr, orStream_t stream) noexcept {
  return api_call("orFreeAsync", [&] {
    Stream& object = stream_of(stream);
    object.check_not_captured("a captured stream was given a free");
    if (devPtr != nullptr) {
      owner_of(devPtr).memory().free_in_order(devPtr, object);
      activity::note_block(orActivityFree, object.device(), devPtr, 0);
    }
  });
}

orError_t orMemPoolCreate(
    orMemPool_t* pool,
    const orMemPoolProps* props) noexcept {
  return api_call("orMemPoolCreate", [&] {
    check_not_null(pool, "pool");
    const auto known = read_struct(props, "props");
    auto& device = runtime().device(known.device);
    const auto epoch = device.state().check();
    *pool = device.memory().with_pools([&](MemoryPools& pools) {
      device.state().check_since(epoch);
      return handle_of(pools.create(known.maxSize));
    });
  });
}

orError_t orMemPoolDestroy(orMemPool_t pool) noexcept {
  return api_call("orMemPoolDestroy", [&] {
    MemoryPool& object = known_pool(pool);
    auto& device = device_with(object);
    if (&object == &default_pool(device)) {
      throw Failure(
          orErrorInvalidValue,
          "pool is the default pool of device " +
              std::to_string(object.device) + ", which cannot be destroyed");
    }
    end_memory_pool(pool);
    device.memory().with_pools(
        [&](MemoryPools& pools) { pools.destroy(object); });
  });
}

orError_t orDeviceGetDefaultMemPool(orMemPool_t* pool, int device) noexcept {
  return api_call("orDeviceGetDefaultMemPool", [&] {
    check_not_null(pool, "pool");
    *pool = runtime().device(device).memory().with_pools(
        [](MemoryPools& pools) { return handle_of(pools.default_pool()); });
  });
}

orError_t orDeviceGetMemPool(orMemPool_t* pool, int device) noexcept {
  return api_call("orDeviceGetMemPool", [&] {
    check_not_null(pool, "pool");
    *pool = runtime().device(device).memory().with_pools(
        [](MemoryPools& pools) { return handle_of(pools.current()); });
  });
}

orError_t orDeviceSetMemPool(int device, orMemPool_t pool) noexcept {
  return api_call("orDeviceSetMemPool", [&] {
    auto& object = runtime().device(device);
    MemoryPool& current = known_pool(pool);
    if (current.device != device) {
      throw Failure(
          orErrorInvalidValue,
          "pool belongs to device " + std::to_string(current.device) +
              ": expected a pool of device " + std::to_string(device));
    }
    object.memory().with_pools([&](MemoryPools& pools) {
      MemoryPools::check_live(current);
      pools.set_current(current);
    });
  });
}

orError_t orMemPoolTrimTo(orMemPool_t pool, size_t minBytesToKeep) noexcept {
  return api_call("orMemPoolTrimTo", [&] {
    MemoryPool& object = known_pool(pool);
    device_with(object).memory().with_pools(
        [&](MemoryPools& pools) { pools.trim(object, minBytesToKeep); });
  });
}

orError_t orMemPoolGetAttribute(
    orMemPool_t pool,
    orMemPoolAttr attr,
    void* value) noexcept {
  return api_call("orMemPoolGetAttribute", [&] {
    check_not_null(value, "value");
    MemoryPool& object = known_pool(pool);
    device_with(object).memory().with_pools([&](MemoryPools&) {
      *static_cast<std::uint64_t*>(value) = *number_of(object, attr);
    });
  });
}

orError_t orMemPoolSetAttribute(
    orMemPool_t pool,
    orMemPoolAttr attr,
    void* value) noexcept {
  return api_call("orMemPoolSetAttribute", [&] {
    check_not_null(value, "value");
    MemoryPool& object = known_pool(pool);
    device_with(object).memory().with_pools([&](MemoryPools&) {
      set_attribute(object, attr, *static_cast<const std::uint64_t*>(value));
    });
  });
}

} // extern "C"
