// SPDX-License-Identifier: BSD-3-Clause
// Threads that share streams, events and blocks without synchronization: they
// destroy and free objects, and reset the device, while others use them.
#include "stress_world.h"

#include <chrono>
#include <thread>
#include <vector>

namespace stress {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kTouchesData = false; // this program has intended races
#else
constexpr bool kTouchesData = true;
#endif

constexpr std::size_t kSlots = 8;
constexpr std::size_t kBytes = 4096;

std::atomic<orStream_t> g_streams[kSlots];
std::atomic<orEvent_t> g_events[kSlots];
std::atomic<void*> g_blocks[kSlots];
std::atomic<orMemPool_t> g_pools[kSlots];

class Worker {
 public:
  Worker(World& world, Log& log, std::uint64_t seed)
      : world_(world), log_(log), random_(seed) {}

  void run() {
    while (!world_.stop) {
      // A kernel's change of the device ends with the kernel.
      note(STRESS_CALL(log_, orSetDevice, kWildDevice));
      step();
      if (lost_ && chance(random_, 0.5)) {
        lost_ = false;
        note(STRESS_CALL(log_, orDeviceReset));
      }
    }
  }

 private:
  orStream_t stream() {
    return g_streams[below(random_, kSlots)];
  }
  orEvent_t event() {
    return g_events[below(random_, kSlots)];
  }
  void* block() {
    return g_blocks[below(random_, kSlots)];
  }
  orMemPool_t pool() {
    return g_pools[below(random_, kSlots)];
  }
  void note(orError_t error) {
    lost_ = lost_ || sticks(error);
  }

  void step();
  void make();
  void make_in_order();
  void destroy();
  void destroy_in_order();
  void launch();
  void copy();
  void wait();
  void limit();

  World& world_;
  Log& log_;
  Random random_;
  bool lost_ = false;
};

#define CALL(function, ...) note(STRESS_CALL(log_, function, __VA_ARGS__))

void Worker::make() {
  const std::size_t slot = below(random_, kSlots);
  orStream_t stream = nullptr;
  orEvent_t event = nullptr;
  void* block = nullptr;
  switch (below(random_, 3)) {
    case 0:
      CALL(orStreamCreate, &stream);
      stream = g_streams[slot].exchange(stream);
      CALL(orStreamDestroy, stream);
      break;
    case 1:
      CALL(orEventCreate, &event);
      event = g_events[slot].exchange(event);
      CALL(orEventDestroy, event);
      break;
    default:
      CALL(orMalloc, &block, kBytes);
      block = g_blocks[slot].exchange(block);
      CALL(orFree, block);
  }
}

/// Blocks of pools, and pools.
void Worker::make_in_order() {
  const std::size_t slot = below(random_, kSlots);
  orMemPoolProps props = OPENREG_MEM_POOL_PROPS_INIT;
  orMemPool_t pool = nullptr;
  void* block = nullptr;
  switch (below(random_, 4)) {
    case 0:
      props.device = kWildDevice;
      props.maxSize = below(random_, 3) * kBytes;
      CALL(orMemPoolCreate, &pool, &props);
      pool = g_pools[slot].exchange(pool);
      CALL(orMemPoolDestroy, pool);
      break;
    case 1:
      CALL(orDeviceSetMemPool, kWildDevice, this->pool());
      break;
    case 2:
      CALL(orMallocAsync, &block, kBytes, stream());
      block = g_blocks[slot].exchange(block);
      CALL(orFreeAsync, block, stream());
      break;
    default:
      CALL(orMallocFromPoolAsync, &block, kBytes, this->pool(), stream());
      block = g_blocks[slot].exchange(block);
      CALL(orFreeAsync, block, stream());
  }
}

/// Keeps the handle or pointer in its slot.
void Worker::destroy() {
  switch (below(random_, 4)) {
    case 0:
      CALL(orStreamDestroy, stream());
      break;
    case 1:
      CALL(orEventDestroy, event());
      break;
    case 2:
      CALL(orFree, block());
      break;
    default:
      CALL(orFreeUnused, block());
  }
}

/// Like destroy().
void Worker::destroy_in_order() {
  std::uint64_t threshold = below(random_, 3) * kBytes;
  switch (below(random_, 4)) {
    case 0:
      CALL(orMemPoolDestroy, pool());
      break;
    case 1:
      CALL(orMemPoolTrimTo, pool(), threshold);
      break;
    case 2:
      CALL(
          orMemPoolSetAttribute,
          pool(),
          orMemPoolAttrReleaseThreshold,
          &threshold);
      break;
    default:
      CALL(orFreeAsync, block(), stream());
  }
}

void Worker::launch() {
  const orStream_t own = stream();
  void* const unused = block();
  switch (below(random_, 5)) {
    case 0:
      CALL(orLaunchKernel, own, [owned = world_.owned] {});
      break;
    case 1:
      CALL(orLaunchKernel, own, [owned = world_.owned, own] {
        // In its own kernel, unless the handle belongs to a new stream now.
        static_cast<void>(orLaunchKernel(own, [owned] {}));
        throw 1;
      });
      break;
    case 2:
      CALL(orLaunchKernel, own, [owned = world_.owned, unused] {
        static_cast<void>(orFreeUnused(unused));
      });
      break;
    case 3:
      CALL(orLaunchHostFunc, own, [](void*) {}, nullptr, nullptr);
      break;
    default:
      CALL(orLaunchKernelBlocking, own, [](void*) {}, nullptr);
  }
}

void Worker::copy() {
  if (!kTouchesData) {
    return;
  }
  constexpr std::size_t kRows = 8;
  constexpr std::size_t kPitch = kBytes / kRows;
  char host[kBytes] = {};
  switch (below(random_, 7)) {
    case 0:
      CALL(orMemset, block(), 1, kBytes);
      break;
    case 1:
      CALL(orMemsetAsync, block(), 1, kBytes, stream());
      break;
    case 2:
      CALL(orMemcpy, block(), host, kBytes, orMemcpyHostToDevice);
      break;
    case 3:
      CALL(
          orMemcpyAsync, host, block(), kBytes, orMemcpyDeviceToHost, stream());
      break;
    case 4:
      CALL(orMemcpyPeer, block(), kWildDevice, block(), kWildDevice, kBytes);
      break;
    case 5:
      CALL(
          orMemcpy2DAsync,
          block(),
          kPitch,
          host,
          kPitch,
          kPitch / 2,
          kRows,
          orMemcpyHostToDevice,
          stream());
      break;
    default:
      CALL(
          orMemcpyPeerAsync,
          block(),
          kWildDevice,
          block(),
          kWildDevice,
          kBytes,
          stream());
  }
}

void Worker::wait() {
  switch (below(random_, 8)) {
    case 0:
      CALL(orStreamSynchronize, stream());
      break;
    case 1:
      CALL(orDeviceSynchronize);
      break;
    case 2:
      CALL(orEventSynchronize, event());
      break;
    case 3:
      CALL(orStreamQuery, stream());
      break;
    case 4:
      CALL(orEventQuery, event());
      break;
    case 5:
      CALL(orStreamWaitEvent, stream(), event(), 0);
      break;
    case 6: {
      float time = 0;
      CALL(orEventElapsedTime, &time, event(), event());
      break;
    }
    default:
      CALL(orEventRecord, event(), stream());
  }
}

void Worker::limit() {
  static constexpr std::size_t kTimes[] = {0, 1, kLongTime};
  switch (below(random_, 5)) {
    case 0:
      CALL(orDeviceSetLimit, orLimitWaitTimeout, kTimes[below(random_, 3)]);
      break;
    case 1:
      CALL(orDeviceSetLimit, orLimitMemory, below(random_, 8 * kBytes));
      break;
    case 2:
      CALL(orMemoryUnprotect, block());
      break;
    case 3:
      CALL(orMemoryProtect, block());
      break;
    default: {
      orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
      CALL(orPointerGetAttributes, &attributes, block());
    }
  }
}

void Worker::step() {
  using Action = void (Worker::*)();
  static constexpr Action kActions[] = {
      &Worker::make,
      &Worker::make,
      &Worker::make_in_order,
      &Worker::destroy,
      &Worker::destroy_in_order,
      &Worker::launch,
      &Worker::launch,
      &Worker::copy,
      &Worker::copy,
      &Worker::wait,
      &Worker::wait,
      &Worker::wait};
  if (chance(random_, 0.001)) {
    CALL(orDeviceReset);
  } else if (chance(random_, 0.02)) {
    limit();
  } else {
    (this->*kActions[below(random_, std::size(kActions))])();
  }
}

} // namespace

void work_wildly(World& world, Log& log, std::uint64_t seed) {
  Worker(world, log, seed).run();
}

void end_wild_work(Log& log) {
  for (auto& event : g_events) {
    static_cast<void>(STRESS_CALL(log, orEventDestroy, event));
  }
}

void make_trouble(World& world, Log& log, std::uint64_t seed) {
  Random random(seed);
  std::vector<orFailure_t> failures;
  const auto remove_oldest = [&] {
    if (STRESS_CALL(log, orFailureRemove, failures.front()) != orSuccess) {
      fail("a failure cannot be removed: %s", orGetErrorMessage());
    }
    failures.erase(failures.begin());
  };
  while (!world.stop) {
    log.doing("waiting a little");
    std::this_thread::sleep_for(
        std::chrono::microseconds(1000 + below(random, 10'000)));
    orFailureSpec spec = OPENREG_FAILURE_SPEC_INIT;
    spec.site = static_cast<orFailureSite>(below(random, 4));
    spec.device = -1;
    spec.first = 1;
    spec.probability = 0.01;
    spec.seed = random();
    spec.delay = chance(random, 0.3) ? below(random, 2000) : 0;
    if (spec.site == orFailureMalloc || spec.site == orFailureMallocHost) {
      spec.error = orErrorMemoryAllocation;
    } else {
      spec.error = orErrorLaunchFailure;
      spec.device = static_cast<int>(below(random, kDeviceCount + 1)) - 1;
    }
    if (chance(random, 0.05) && spec.site != orFailureMallocHost) {
      spec.error = orErrorDeviceLost; // at the next call
      spec.probability = 0;
    } else if (chance(random, 0.05) && spec.error == orErrorLaunchFailure) {
      spec.error = orErrorIllegalAddress;
      spec.probability = 0;
    }
    orFailure_t failure = nullptr;
    if (STRESS_CALL(log, orFailureInject, &failure, &spec) != orSuccess) {
      fail("a failure cannot be injected: %s", orGetErrorMessage());
      continue;
    }
    failures.push_back(failure);
    if (failures.size() > 4) {
      remove_oldest();
    }
    if (chance(random, 0.02)) {
      const int device = static_cast<int>(below(random, kDeviceCount));
      static_cast<void>(STRESS_CALL(log, orDeviceLose, device));
    }
  }
  while (!failures.empty()) {
    remove_oldest();
  }
}

} // namespace stress
