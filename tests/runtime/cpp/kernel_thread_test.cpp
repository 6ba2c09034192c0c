// SPDX-License-Identifier: BSD-3-Clause
// Commands behave the same on a worker and on a waiting thread.
#include "support.h"

namespace {

int current() {
  int device = -1;
  EXPECT_OK(orGetDevice(&device));
  return device;
}

/// Runs `body` as a kernel of device 1 on this thread, with device 0 current.
template <typename Body>
void run_on_this_thread(Body body) {
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamGetDefault(&stream, 1));
  struct Call {
    Body body;
    std::thread::id thread;
  } call{body, {}};
  ASSERT_OK(orLaunchKernelBlocking(
      stream,
      [](void* args) {
        auto& arguments = *static_cast<Call*>(args);
        arguments.thread = std::this_thread::get_id();
        arguments.body();
      },
      &call));
  EXPECT_EQ(call.thread, std::this_thread::get_id());
}

TEST(orGetDevice, InAKernelIsTheDeviceOfItsStream) {
  int on_worker = -1;
  {
    const CurrentDevice device(1);
    const Stream stream;
    Signal done;
    ASSERT_OK(orLaunchKernel(stream, [&] {
      on_worker = current();
      done.set();
    }));
    done.wait(); // a synchronization could run the kernel on this thread
  }
  EXPECT_EQ(on_worker, 1);
  int on_this_thread = -1;
  run_on_this_thread([&] { on_this_thread = current(); });
  EXPECT_EQ(on_this_thread, 1);
}

TEST(orSetDevice, InAKernelEndsWithIt) {
  run_on_this_thread([] { EXPECT_OK(orSetDevice(1)); });
  EXPECT_EQ(current(), 0);
}

TEST(orMalloc, InAKernelTakesFromItsDevice) {
  void* pointer = nullptr;
  run_on_this_thread([&] { EXPECT_OK(orMalloc(&pointer, 64)); });
  orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
  ASSERT_OK(orPointerGetAttributes(&attributes, pointer));
  EXPECT_EQ(attributes.device, 1);
  EXPECT_OK(orFree(pointer));
}

TEST(orGetLastError, InAKernelIsSeparateFromTheThreads) {
  EXPECT_EQ(orMalloc(nullptr, 1), orErrorInvalidValue);
  const std::string before = orGetErrorMessage();
  orError_t at_first = orErrorUnknown;
  orError_t at_last = orErrorUnknown;
  run_on_this_thread([&] {
    at_first = orPeekAtLastError();
    EXPECT_EQ(orDeviceSynchronize(), orErrorNotPermitted);
    at_last = orPeekAtLastError();
  });
  EXPECT_EQ(at_first, orSuccess);
  EXPECT_EQ(at_last, orErrorNotPermitted);
  EXPECT_EQ(orGetErrorMessage(), before);
  EXPECT_EQ(orGetLastError(), orErrorInvalidValue);
}

TEST(orGetErrorMessage, OfNotReadyInAKernelIsSeparateFromTheThreads) {
  const Stream stream;
  const Latch latch(stream);
  EXPECT_EQ(orMalloc(nullptr, 1), orErrorInvalidValue);
  const std::string before = orGetErrorMessage();
  std::string inside;
  run_on_this_thread([&, handle = orStream_t(stream)] {
    EXPECT_EQ(orStreamQuery(handle), orErrorNotReady);
    inside = orGetErrorMessage();
  });
  EXPECT_NE(inside, before);
  EXPECT_EQ(orGetErrorMessage(), before);
  EXPECT_EQ(orStreamQuery(stream), orErrorNotReady);
  const std::string not_ready = orGetErrorMessage();
  run_on_this_thread([] {});
  EXPECT_EQ(orGetErrorMessage(), not_ready);
  static_cast<void>(orGetLastError());
}

} // namespace
