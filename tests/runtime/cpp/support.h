// SPDX-License-Identifier: BSD-3-Clause
// Shared helpers: owners of handles, and a latch that blocks a stream.
#pragma once

#include <openreg/openreg.h>

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#if defined(_WIN32)
#include "windows.h"
#else
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
#endif

#define ASSERT_OK(call) ASSERT_EQ(call, orSuccess) << orGetErrorMessage()
#define EXPECT_OK(call) EXPECT_EQ(call, orSuccess) << orGetErrorMessage()
#define EXPECT_MESSAGE(part)                                                \
  EXPECT_NE(std::string(orGetErrorMessage()).find(part), std::string::npos) \
      << "the message is: " << orGetErrorMessage()

/// Returns the kernel pointer of a device pointer.
template <typename T>
T* kernel_pointer(T* pointer) {
  void* result = nullptr;
  EXPECT_OK(orGetKernelPointer(&result, pointer));
  return static_cast<T*>(result);
}

/// Replies with the message, or fails if it is "fail".
inline int echo(const void* message, size_t size, orReply_t reply, void* args) {
  if (std::string(static_cast<const char*>(message), size) == "fail") {
    throw std::runtime_error("the message requests a failure");
  }
  reply(args, message, size);
  return 0;
}
inline constexpr orExecutor kEchoExecutor{
    sizeof(orExecutor),
    echo,
    nullptr,
    0,
    nullptr};

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

/// A block of pinned memory.
class PinnedBlock {
 public:
  explicit PinnedBlock(std::size_t size) {
    EXPECT_OK(orMallocHost(&pointer_, size));
  }
  PinnedBlock(const PinnedBlock&) = delete;
  PinnedBlock& operator=(const PinnedBlock&) = delete;
  ~PinnedBlock() {
    EXPECT_OK(orFreeHost(pointer_));
  }
  char* get() const {
    return static_cast<char*>(pointer_);
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

/// Makes a device current during the scope.
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

/// A limit of the current device during the scope.
class Limit {
 public:
  Limit(orLimit limit, std::size_t value) : limit_(limit) {
    EXPECT_OK(orDeviceGetLimit(&previous_, limit));
    EXPECT_OK(orDeviceSetLimit(limit, value));
  }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  ~Limit() {
    EXPECT_OK(orDeviceSetLimit(limit_, previous_));
  }

 private:
  orLimit limit_;
  std::size_t previous_ = 0;
};

/// A one-time event that threads can wait for.
class Signal {
 public:
  void set() {
    // Under the lock, because a waiting thread may destroy the object
    // immediately.
    const std::lock_guard lock(mutex_);
    set_ = true;
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

/// A kernel that blocks a stream from construction until release().
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

/// A failure injected during the scope. Defaults: all devices,
/// orErrorLaunchFailure, each call from the first on, unless there is a
/// probability.
class InjectedFailure {
 public:
  struct Spec {
    orFailureSite site;
    int device = -1;
    orError_t error = orErrorLaunchFailure;
    std::uint64_t delay = 0; // microseconds
    std::uint64_t first = 1;
    std::uint64_t period = 1;
    double probability = 0;
    std::uint64_t seed = 0;
  };

  explicit InjectedFailure(const Spec& spec) {
    const orFailureSpec c_spec{
        sizeof(orFailureSpec),
        spec.site,
        spec.device,
        spec.error,
        spec.delay,
        spec.first,
        spec.probability > 0 ? 0 : spec.period,
        spec.probability,
        spec.seed};
    EXPECT_OK(orFailureInject(&handle_, &c_spec));
  }
  InjectedFailure(const InjectedFailure&) = delete;
  InjectedFailure& operator=(const InjectedFailure&) = delete;
  ~InjectedFailure() {
    EXPECT_OK(orFailureRemove(handle_));
  }
  operator orFailure_t() const {
    return handle_;
  }
  std::uint64_t calls() const {
    return counts().first;
  }
  std::uint64_t hits() const {
    return counts().second;
  }

 private:
  std::pair<std::uint64_t, std::uint64_t> counts() const {
    std::uint64_t calls = 0;
    std::uint64_t hits = 0;
    EXPECT_OK(orFailureGetCounts(handle_, &calls, &hits));
    return {calls, hits};
  }

  orFailure_t handle_ = nullptr;
};

#if !defined(_WIN32)
/// Runs `body` in a forked child and returns its exit status.
inline int fork_and_run(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    std::_Exit(body());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
#endif

/// Returns the bytes of device memory, which depend on the machine.
inline std::size_t device_memory() {
  orSetting setting = OPENREG_SETTING_INIT;
  EXPECT_OK(orGetSettingByName("OPENREG_DEVICE_MEMORY", &setting));
  return setting.number;
}

/// Returns the free memory of the current device, in bytes.
inline std::size_t free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_OK(orMemGetInfo(&free, &total));
  return free;
}

#if !defined(_WIN32)
inline std::size_t page_size() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}
#endif

/// Whether a process with this status was ended by a fault.
inline bool ended_by_fault(int status) {
#if defined(_WIN32)
  return status == kAccessViolation;
#else
  return testing::KilledBySignal(SIGSEGV)(status);
#endif
}

/// Returns the shared memory of this process, in bytes.
inline std::size_t resident_shared() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  std::size_t shared = 0;
  file >> total >> resident >> shared;
  return shared * page_size();
}

/// Makes the test's death tests run in a process that has not used devices.
inline void use_fresh_processes() {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
}

/// A suite whose death tests run in fresh processes.
class FreshProcess : public testing::Test {
 protected:
  void SetUp() override {
    use_fresh_processes();
  }
};

/// Ends a child process: 0 if all its expectations held, else 1.
[[noreturn]] inline void finish() {
  std::fflush(stdout); // prints the failed expectations
  std::_Exit(testing::Test::HasFailure() ? 1 : 0);
}

/// Ends a child process with the last error's message on stderr: 0 if `error`
/// is the expected code.
[[noreturn]] inline void report(orError_t error, orError_t expected) {
  std::fprintf(stderr, "%s: %s\n", orGetErrorName(error), orGetErrorMessage());
  EXPECT_EQ(error, expected);
  finish();
}
