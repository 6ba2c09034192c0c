// SPDX-License-Identifier: BSD-3-Clause
// Compares all functions with the header: a function returns a code if it is
// documented, and works otherwise.
#include "every_function.h"

#include "documented.h"

#include <set>

namespace {

/// Returns the result of a call in a state that makes functions return `code`
/// if they document it.
orError_t expected(const Row& row, orError_t code) {
  const bool can_succeed = row.result == orSuccess;
  return can_succeed && documents(row.name, code) ? code : row.result;
}

/// Like expected(), but while the call's work is running.
orError_t expected_meanwhile(const Row& row, orError_t code) {
  if (row.name == "orSetSchedule") { // refuses to change while work is pending
    return orErrorNotPermitted;
  }
  return documents(row.name, code) ? expected(row, code)
                                   : expected(row, orErrorNotReady);
}

TEST(EveryFunction, HasARowOrAReason) {
  std::set<std::string> documented;
  for (const auto& [name, codes] : documented_codes()) {
    documented.insert(name);
  }
  std::set<std::string> known;
  for (const Row& row : rows()) {
    EXPECT_TRUE(known.insert(row.name).second) << row.name << " is there twice";
  }
  for (const auto& [name, reason] : exempt_functions()) {
    EXPECT_TRUE(known.insert(name).second) << name << " is there twice";
    EXPECT_NE(reason, "") << name;
  }
  EXPECT_EQ(known, documented);
}

TEST(EveryFunction, WorksWithTheArgumentsOfTheTable) {
  for (const Row& row : rows()) {
    World world;
    EXPECT_EQ(row.call(world)(), row.result)
        << row.name << ": " << orGetErrorMessage();
  }
}

TEST(EveryFunction, InAForkedChildIsInitialization) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows does not fork";
#else
  for (const Row& row : rows()) {
    World world;
    const Call call = row.call(world);
    const orError_t error =
        row.has(kAnswersAfterFork) ? row.result : orErrorInitialization;
    EXPECT_EQ(fork_and_run([&] { return call() == error ? 0 : 1; }), 0)
        << row.name;
  }
#endif
}

TEST(EveryFunction, NullPointerIsInvalidValue) {
  for (const Row& row : rows()) {
    EXPECT_EQ(row.has(kRejectsNull), !row.pointers.empty()) << row.name;
    for (const std::size_t argument : row.pointers) {
      World world;
      const Call call = row.bind(world, Instead::kNull, argument);
      EXPECT_EQ(call(), orErrorInvalidValue)
          << "argument " << argument << " of " << row.name;
    }
  }
}

TEST(EveryFunction, EndedHandleIsInvalidHandle) {
  for (const Row& row : rows()) {
    EXPECT_EQ(documents(row.name, orErrorInvalidHandle), !row.handles.empty())
        << row.name;
    for (const std::size_t argument : row.handles) {
      World world;
      const Call call = row.bind(world, Instead::kEnded, argument);
      EXPECT_EQ(call(), orErrorInvalidHandle)
          << "argument " << argument << " of " << row.name;
    }
  }
}

TEST(EveryFunction, OnALostDeviceIsDeviceLostWhereDocumented) {
  for (const Row& row : rows()) {
    World world;
    const Call call = row.call(world);
    ASSERT_OK(orDeviceLose(0));
    EXPECT_EQ(call(), expected(row, orErrorDeviceLost)) << row.name;
  }
}

TEST(EveryFunction, AfterAnIllegalAddressIsIllegalAddressWhereDocumented) {
  for (const Row& row : rows()) {
    World world;
    const Call call = row.call(world);
    {
      const InjectedFailure failure(
          {.site = orFailureLaunch, .error = orErrorIllegalAddress});
      EXPECT_EQ(
          orLaunchKernelBlocking(
              world.stream, [](void*) {}, nullptr),
          orErrorIllegalAddress);
    }
    EXPECT_EQ(call(), expected(row, orErrorIllegalAddress)) << row.name;
  }
}

TEST(EveryFunction, AfterAFailedAssertionIsAssertWhereDocumented) {
  for (const Row& row : rows()) {
    World world;
    const Call call = row.call(world);
    ASSERT_OK(orDeviceAssertFail(0, "an index is out of range"));
    EXPECT_EQ(call(), expected(row, orErrorAssert)) << row.name;
  }
}

TEST(EveryFunction, AfterAFailedKernelIsLaunchFailureWhereDocumented) {
  for (const Row& row : rows()) {
    World world;
    const Call call = row.call(world);
    ASSERT_OK(
        orLaunchKernel(world.stream, [] { throw std::runtime_error("x"); }));
    ASSERT_OK(orEventRecord(world.later, world.stream));
    while (orStreamQuery(world.stream) == orErrorNotReady) {
      std::this_thread::yield();
    }
    const InjectedFailure launches({.site = orFailureLaunch});
    const InjectedFailure copies({.site = orFailureCopy});
    EXPECT_EQ(call(), expected(row, orErrorLaunchFailure)) << row.name;
  }
}

TEST(EveryFunction, WithoutMemoryIsMemoryAllocationWhereDocumented) {
  // Tested separately, because failures do not stop them.
  const std::set<std::string> unaffected = {
      "orInit", "orEventCreateWithFlags", "orEventRecord", "orIpcGetMemHandle"};
  for (const Row& row : rows()) {
    if (unaffected.count(row.name) > 0) {
      continue;
    }
    World world;
    const Call call = row.call(world);
    const InjectedFailure blocks(
        {.site = orFailureMalloc, .error = orErrorMemoryAllocation});
    const InjectedFailure pinned_blocks(
        {.site = orFailureMallocHost, .error = orErrorMemoryAllocation});
    EXPECT_EQ(call(), expected(row, orErrorMemoryAllocation)) << row.name;
  }
}

TEST(EveryFunction, OnAHeldStreamIsTimeoutWhereDocumented) {
  for (const Row& row : rows()) {
    World world;
    world.hold();
    const Call call = row.call(world);
    ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 1));
    EXPECT_EQ(call(), expected_meanwhile(row, orErrorTimeout))
        << row.name << ": " << orGetErrorMessage();
  }
}

TEST(EveryFunction, InAKernelOfItsStreamIsNotPermittedWhereDocumented) {
  for (const Row& row : rows()) {
    World world;
    Signal recorded;
    Signal called;
    Call call;
    orError_t error = orErrorUnknown;
    ASSERT_OK(orLaunchKernel(world.stream, [&] {
      recorded.wait();
      error = call();
      called.set();
    }));
    ASSERT_OK(orEventRecord(world.later, world.stream));
    call = row.call(world);
    recorded.set();
    called.wait();
    EXPECT_EQ(error, expected_meanwhile(row, orErrorNotPermitted)) << row.name;
  }
}

class EveryFunctionAtFirst : public FreshProcess {};

TEST_F(EveryFunctionAtFirst, WithAWrongSettingIsInvalidValueIfItNeedsOne) {
  EXPECT_EXIT(
      {
        setenv("OPENREG_DEVICE_COUNT", "none", 1);
        int wrong = 0;
        for (const Row& row : rows()) {
          World world{World::Empty()};
          const orError_t error = row.call(world)();
          const std::string message =
              error == orSuccess ? "" : orGetErrorMessage();
          const bool names_it =
              message.find("OPENREG_DEVICE_COUNT='none'") != std::string::npos;
          const bool fails = error == orErrorInvalidValue && names_it;
          if (row.has(kNeedsSettings) ? !fails : names_it) {
            std::fprintf(
                stderr,
                "%s: %s %s\n",
                row.name.c_str(),
                orGetErrorName(error),
                message.c_str());
            ++wrong;
          }
        }
        std::_Exit(wrong);
      },
      testing::ExitedWithCode(0),
      "^$");
}

} // namespace
