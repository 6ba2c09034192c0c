// SPDX-License-Identifier: BSD-3-Clause
// Frees memory and resets devices while other threads use them. Only documented
// errors may follow.
#include "support.h"

#include <atomic>
#include <functional>
#include <set>

namespace {

using UnderMemoryCheck = FreshProcess;

/// Collects the codes that calls return.
class Codes {
 public:
  orError_t add(orError_t error) {
    const std::lock_guard lock(mutex_);
    codes_.insert(error);
    return error;
  }
  /// Checks that all codes are expected.
  void expect_only(const std::set<orError_t>& accepted) {
    const std::lock_guard lock(mutex_);
    for (const orError_t code : codes_) {
      EXPECT_TRUE(accepted.contains(code)) << orGetErrorName(code);
    }
  }

 private:
  std::mutex mutex_;
  std::set<orError_t> codes_;
};

/// Uses the current device like a program, and continues after errors.
void use_the_device(Codes& codes) {
  void* block = nullptr;
  orStream_t stream = nullptr;
  orEvent_t event = nullptr;
  char host[64] = {};
  codes.add(orMalloc(&block, sizeof(host)));
  codes.add(orStreamCreate(&stream));
  EXPECT_OK(orEventCreate(&event));
  if (block != nullptr && stream != nullptr) {
    codes.add(orMemcpy(block, host, sizeof(host), orMemcpyHostToDevice));
    codes.add(orMemsetAsync(block, 1, sizeof(host), stream));
    codes.add(orLaunchKernel(stream, [] {}));
    codes.add(
        orMemcpyAsync(host, block, sizeof(host), orMemcpyDeviceToHost, stream));
    codes.add(orEventRecord(event, stream));
    codes.add(orMemoryUnprotect(block));
    codes.add(orEventSynchronize(event));
    codes.add(orStreamSynchronize(stream));
    codes.add(orDeviceSynchronize());
    codes.add(orStreamDestroy(stream));
    codes.add(orFree(block));
  } else if (stream != nullptr) {
    codes.add(orStreamDestroy(stream));
  } else {
    codes.add(orFree(block));
  }
  EXPECT_OK(orEventDestroy(event));
}

TEST(orDeviceReset, WhileOtherThreadsUseTheDevice) {
  constexpr int kUses = 500;
  Codes codes;
  std::atomic<int> uses{0};
  std::vector<std::thread> users;
  for (int i = 0; i < 3; ++i) {
    users.emplace_back([&] {
      while (uses++ < kUses) {
        use_the_device(codes);
      }
    });
  }
  const auto reset = [&] {
    while (uses < kUses) {
      EXPECT_OK(orDeviceReset());
    }
  };
  std::thread other(reset); // also two resets at the same time
  reset();
  other.join();
  for (auto& thread : users) {
    thread.join();
  }
  // The results for a block or a stream from before the reset. A new block of
  // another thread may have the same address and be freed during the copy.
  codes.expect_only(
      {orSuccess,
       orErrorDeviceLost,
       orErrorIllegalAddress,
       orErrorInvalidValue,
       orErrorInvalidHandle});
  EXPECT_OK(orDeviceReset());
}

TEST(orDeviceReset, EarlierCallsDoNotHarmTheNewDevice) {
  // Only one thread allocates, so no other block has the address of a lost one.
  constexpr int kResets = 500;
  Codes codes;
  std::atomic<bool> stop{false};
  std::thread user([&] {
    while (!stop) {
      use_the_device(codes);
    }
  });
  for (int i = 0; i < kResets; ++i) {
    EXPECT_OK(orDeviceReset());
    EXPECT_OK(orDeviceSynchronize());
  }
  stop = true;
  user.join();
  codes.expect_only(
      {orSuccess,
       orErrorDeviceLost,
       orErrorInvalidValue,
       orErrorInvalidHandle});
  EXPECT_OK(orDeviceReset());
}

/// Runs `call`, which must wait its turn, during a reset of the device.
orError_t call_during_a_reset(const std::function<orError_t()>& call) {
  Latch latch(nullptr);
  orError_t error = orSuccess;
  std::thread caller([&] { error = call(); });
  std::thread resetter([] { EXPECT_OK(orDeviceReset()); });
  while (orStreamQuery(nullptr) != orErrorDeviceLost) {
    std::this_thread::yield();
  }
  latch.release();
  caller.join();
  resetter.join();
  EXPECT_OK(orDeviceSynchronize()) << "the new device is in order";
  return error;
}

TEST(orLaunchKernelBlocking, ThatWaitsDuringAResetIsDeviceLost) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> ran{false};
    const orError_t error = call_during_a_reset([&ran] {
      return orLaunchKernelBlocking(
          nullptr,
          [](void* p) { *static_cast<std::atomic<bool>*>(p) = true; },
          &ran);
    });
    // A call that begins after the reset succeeds.
    EXPECT_EQ(error, ran ? orSuccess : orErrorDeviceLost);
  }
}

TEST(orMemcpy, ThatWaitsDuringAResetIsDeviceLost) {
  for (int round = 0; round < 50; ++round) {
    void* block = nullptr;
    ASSERT_OK(orMalloc(&block, 64));
    Codes codes;
    call_during_a_reset([&codes, block] {
      const char host[64] = {};
      return codes.add(orMemcpy(block, host, 64, orMemcpyHostToDevice));
    });
    // orErrorInvalidValue if the call began after the reset.
    codes.expect_only({orErrorDeviceLost, orErrorInvalidValue});
  }
}

TEST(orMemcpyPeer, WhileTheOtherDeviceIsResetHarmsNeither) {
  constexpr int kResets = 200;
  const Block from(64);
  Codes codes;
  std::atomic<bool> stop{false};
  std::thread copier([&] {
    while (!stop) {
      void* to = nullptr;
      {
        const CurrentDevice other(1);
        codes.add(orMalloc(&to, 64));
      }
      if (to != nullptr) {
        for (int i = 0; i < 4; ++i) {
          codes.add(orMemcpyPeer(to, 1, from.get(), 0, 64));
          codes.add(orMemcpyPeer(from.get(), 0, to, 1, 64));
          codes.add(orMemcpyPeerAsync(from.get(), 0, to, 1, 64, nullptr));
        }
        codes.add(orDeviceSynchronize());
        codes.add(orFree(to));
      }
    }
  });
  {
    const CurrentDevice other(1);
    for (int i = 0; i < kResets; ++i) {
      EXPECT_OK(orDeviceReset());
      EXPECT_OK(orDeviceSynchronize());
    }
  }
  stop = true;
  copier.join();
  codes.expect_only({orSuccess, orErrorDeviceLost, orErrorInvalidValue});
}

TEST(orStreamSynchronize, FailsIfAResetDropsTheWork) {
  // Waits that end after the reset could mistake the new device for the old
  // one.
  for (int round = 0; round < 50; ++round) {
    orStream_t stream = nullptr;
    ASSERT_OK(orStreamCreate(&stream));
    Latch latch(stream);
    std::atomic<bool> ran{false};
    ASSERT_OK(orLaunchKernel(stream, [&ran] { ran = true; }));
    Codes codes;
    std::vector<std::thread> waiters;
    for (int i = 0; i < 4; ++i) {
      waiters.emplace_back([&] { codes.add(orStreamSynchronize(stream)); });
    }
    std::thread resetter([] { EXPECT_OK(orDeviceReset()); });
    while (orStreamQuery(nullptr) != orErrorDeviceLost) {
      std::this_thread::yield();
    }
    latch.release();
    for (auto& waiter : waiters) {
      waiter.join();
    }
    resetter.join();
    EXPECT_FALSE(ran);
    // orErrorInvalidHandle if the wait began after the reset.
    codes.expect_only({orErrorDeviceLost, orErrorInvalidHandle});
  }
}

/// Copies a block of device 0 on a stream of device 1, for which orFree does
/// not wait, while the block is freed.
void free_under_copies(int rounds) {
  constexpr std::size_t kSize = std::size_t{256} << 10;
  CurrentDevice current(1);
  void* copy = nullptr;
  ASSERT_OK(orMalloc(&copy, kSize));
  Codes codes;
  for (int round = 0; round < rounds; ++round) {
    void* block = nullptr;
    {
      const CurrentDevice owner(0);
      ASSERT_OK(orMalloc(&block, kSize));
      ASSERT_OK(orMemset(block, 1, kSize));
    }
    Signal started;
    std::thread copier([&] {
      ASSERT_OK(orSetDevice(1));
      started.set();
      for (int i = 0; i < 4; ++i) {
        codes.add(orMemcpyPeer(copy, 1, block, 0, kSize));
      }
    });
    started.wait();
    EXPECT_OK(orFree(block));
    copier.join();
    char last = 0;
    if (orMemcpy(
            &last,
            static_cast<char*>(copy) + kSize - 1,
            1,
            orMemcpyDeviceToHost) != orSuccess) {
      ASSERT_OK(orDeviceReset()); // the copy used a freed block
      ASSERT_OK(orMalloc(&copy, kSize));
    }
  }
  ASSERT_OK(orFree(copy));
  codes.expect_only({orSuccess, orErrorInvalidValue, orErrorIllegalAddress});
}

/// Resets the device repeatedly while a thread enqueues and waits: a reset must
/// not drop a command after it has returned.
TEST(orDeviceReset, IsOverWithAllThatWasEnqueuedBefore) {
  struct Resets {
    std::atomic<int> begun{0};
    std::atomic<int> ended{0};
    std::atomic<int> late{0};
    std::atomic<bool> stop{false};
  } resets;
  struct Launch {
    Resets& resets;
    bool ran = false;
  };
  // It matches nothing, but each launch looks it up, which widens the gap
  // between checking the device and counting the command.
  orFailureSpec spec = OPENREG_FAILURE_SPEC_INIT;
  spec.site = orFailureLaunch;
  spec.device = -1;
  spec.first = std::uint64_t{1} << 60;
  spec.delay = 1;
  orFailure_t failure = nullptr;
  ASSERT_OK(orFailureInject(&failure, &spec));
  std::thread looker([&] {
    std::uint64_t calls = 0;
    std::uint64_t hits = 0;
    while (!resets.stop) {
      static_cast<void>(orFailureGetCounts(failure, &calls, &hits));
    }
  });
  std::thread user([&] {
    while (!resets.stop) {
      auto* launch = new Launch{resets};
      const orError_t error = orLaunchKernel(
          nullptr,
          [](void* args) { static_cast<Launch*>(args)->ran = true; },
          launch,
          [](void* args) {
            auto* launch = static_cast<Launch*>(args);
            Resets& resets = launch->resets;
            const int ended = resets.ended;
            if (!launch->ran && resets.begun == ended) {
              ++resets.late;
            }
            delete launch;
          });
      if (error != orSuccess) {
        delete launch;
      }
      static_cast<void>(orStreamSynchronize(nullptr));
    }
  });
  for (int i = 0; i < 2000; ++i) {
    ++resets.begun;
    EXPECT_OK(orDeviceReset());
    ++resets.ended;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  resets.stop = true;
  user.join();
  looker.join();
  ASSERT_OK(orDeviceSynchronize());
  ASSERT_OK(orFailureRemove(failure));
  EXPECT_EQ(resets.late, 0);
}

TEST(orFree, WhileOtherThreadsCopyTheBlock) {
  free_under_copies(100);
}

TEST_F(UnderMemoryCheck, CopyOfABlockThatIsFreedNeverFaults) {
  EXPECT_EXIT(
      {
        setenv("OPENREG_MEMORY_CHECK", "1", 1);
        free_under_copies(100);
        std::_Exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0),
      "");
}

TEST(orFree, ByTwoThreadsSucceedsOnce) {
  for (int round = 0; round < 100; ++round) {
    void* block = nullptr;
    ASSERT_OK(orMalloc(&block, 64));
    std::atomic<int> freed{0};
    const auto free = [&] { freed += orFree(block) == orSuccess ? 1 : 0; };
    std::thread other(free);
    free();
    other.join();
    EXPECT_EQ(freed, 1);
  }
}

} // namespace
