// SPDX-License-Identifier: BSD-3-Clause
// What the tests share: owners of handles, and a latch that holds a stream.
#pragma once

#include <openreg/openreg.h>

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#define ASSERT_OK(call) ASSERT_EQ(call, orSuccess) << orGetErrorMessage()
#define EXPECT_OK(call) EXPECT_EQ(call, orSuccess) << orGetErrorMessage()
#define EXPECT_MESSAGE(part)                                                \
  EXPECT_NE(std::string(orGetErrorMessage()).find(part), std::string::npos) \
      << "the message is: " << orGetErrorMessage()

/// Where a kernel finds the data of a device pointer.
template <typename T>
T* kernel_pointer(T* pointer) {
  void* result = nullptr;
  EXPECT_OK(orGetKernelPointer(&result, pointer));
  return static_cast<T*>(result);
}

/// A block of device memory.
class Block {
 public:
  explicit Block(std::size_t size) {
    EXPECT_OK(orMalloc(&pointer_, size));
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    EXPECT_OK(orFree(pointer_));
  }
  std::byte* get(std::size_t offset = 0) const {
    return static_cast<std::byte*>(pointer_) + offset;
  }

 private:
  void* pointer_ = nullptr;
};

class Stream {
 public:
  explicit Stream(int priority = 0) {
    EXPECT_OK(orStreamCreateWithPriority(&handle_, 0, priority));
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    EXPECT_OK(orStreamDestroy(handle_));
  }
  operator orStream_t() const {
    return handle_;
  }

 private:
  orStream_t handle_ = nullptr;
};

class Event {
 public:
  explicit Event(unsigned int flags = orEventDefault) {
    EXPECT_OK(orEventCreateWithFlags(&handle_, flags));
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    EXPECT_OK(orEventDestroy(handle_));
  }
  operator orEvent_t() const {
    return handle_;
  }

 private:
  orEvent_t handle_ = nullptr;
};

/// Makes a device current as long as the scope lasts.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    EXPECT_OK(orGetDevice(&previous_));
    EXPECT_OK(orSetDevice(device));
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    EXPECT_OK(orSetDevice(previous_));
  }

 private:
  int previous_ = 0;
};

/// Something that happens once and that threads can wait for.
class Signal {
 public:
  void set() {
    {
      const std::lock_guard lock(mutex_);
      set_ = true;
    }
    condition_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    condition_.wait(lock, [this] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool set_ = false;
};

/// A kernel that holds a stream from its construction until release().
class Latch {
 public:
  explicit Latch(orStream_t stream) {
    EXPECT_OK(orLaunchKernel(stream, [state = state_] {
      state->started.set();
      state->released.wait();
    }));
    state_->started.wait();
  }
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;
  ~Latch() {
    release();
  }
  void release() {
    state_->released.set();
  }

 private:
  struct State {
    Signal started;
    Signal released;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// Runs a death test's statement in a process that did not use devices before.
class FreshProcess : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

/// Ends a child process: 0 and the message of the last error if `error` is what
/// was expected, else 1.
[[noreturn]] inline void report(orError_t error, orError_t expected) {
  std::fprintf(stderr, "%s: %s\n", orGetErrorName(error), orGetErrorMessage());
  std::_Exit(error == expected ? 0 : 1);
}
