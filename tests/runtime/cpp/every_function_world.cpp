// SPDX-License-Identifier: BSD-3-Clause
// The objects that the table's calls use.
#include "every_function.h"

#include <algorithm>
#include <cstdlib>

namespace {

constexpr std::size_t kPage = 4096;

/// Destroys objects that the tested call may have destroyed already.
void end(orError_t error, orError_t ended_already) {
  EXPECT_TRUE(error == orSuccess || error == ended_already)
      << orGetErrorMessage();
}

} // namespace

World::World() : live_(true) {
  EXPECT_OK(orSetExecutor(&kEchoExecutor));
  EXPECT_OK(orStreamCreate(&stream));
  for (orEvent_t* event : {&start, &later}) {
    EXPECT_OK(orEventCreate(event));
    EXPECT_OK(orEventRecord(*event, stream));
    EXPECT_OK(orEventSynchronize(*event));
  }
  EXPECT_OK(orEventCreateWithFlags(
      &shared, orEventInterprocess | orEventDisableTiming));
  EXPECT_OK(orFailureInject(&failure, &spec));
  EXPECT_OK(orMemPoolCreate(&pool, &kPoolProps));
  EXPECT_OK(orStreamBeginCapture(stream, orStreamCaptureModeRelaxed));
  EXPECT_OK(orLaunchKernel(stream, [](void*) {}, nullptr, nullptr));
  EXPECT_OK(orStreamEndCapture(stream, &graph));
  EXPECT_OK(orMalloc(&block, kBytes));
  EXPECT_OK(orMalloc(&other_block, kBytes));
  EXPECT_OK(orMallocHost(&pinned, kBytes));
  page = std::malloc(kPage);
}

World::World(Empty)
    : block(host),
      other_block(host),
      pinned(host),
      page(std::malloc(kPage)),
      live_(false) {}

World::~World() {
  if (live_) {
    latches_.clear();
    EXPECT_OK(orDeviceSetLimit(orLimitWaitTimeout, 0));
    EXPECT_OK(orDeviceReset());
    for (const orEvent_t event : {start, later, shared, made_event}) {
      end(orEventDestroy(event), orErrorInvalidHandle);
    }
    for (const orFailure_t one : {failure, made_failure}) {
      end(orFailureRemove(one), orErrorInvalidHandle);
    }
    end(orGraphDestroy(graph), orErrorInvalidHandle);
    for (void* memory : {pinned, made_pinned}) {
      end(orFreeHost(memory), orErrorInvalidValue);
    }
    end(orHostUnregister(page), orErrorHostMemoryNotRegistered);
  }
  std::free(page);
}

void World::hold() {
  for (const orStream_t held : {orStream_t(nullptr), stream}) {
    latches_.push_back(std::make_unique<Latch>(held));
  }
  EXPECT_OK(orEventRecord(later, stream));
}

int World::enabled_peer() const {
  if (live_) {
    EXPECT_OK(orDeviceEnablePeerAccess(1, 0));
  }
  return 1;
}

void* World::registered() const {
  if (live_) {
    EXPECT_OK(orHostRegister(page, kPage, 0));
  }
  return page;
}

orIpcMemHandle_t World::exported_memory() const {
  orIpcMemHandle_t handle{};
  if (live_) {
    EXPECT_OK(orIpcGetMemHandle(&handle, block));
  }
  return handle;
}

orIpcEventHandle_t World::exported_event() const {
  orIpcEventHandle_t handle{};
  if (live_) {
    EXPECT_OK(orIpcGetEventHandle(&handle, shared));
  }
  return handle;
}

Row Row::may_be_null(std::initializer_list<std::size_t> arguments) && {
  for (const std::size_t argument : arguments) {
    pointers.erase(
        std::remove(pointers.begin(), pointers.end(), argument),
        pointers.end());
  }
  return std::move(*this);
}

Row Row::returns(orError_t code) && {
  result = code;
  return std::move(*this);
}
