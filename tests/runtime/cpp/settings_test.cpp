// SPDX-License-Identifier: BSD-3-Clause
// The environment: values, errors, and launches that block.
#include "support.h"

#include <set>
#include <thread>

namespace {

using Settings = FreshProcess;
using LaunchBlocking = FreshProcess;

void expect_rejected(
    const char* name,
    const char* value,
    const char* accepted) {
  EXPECT_EXIT(
      {
        setenv(name, value, 1);
        void* pointer = nullptr;
        report(orMalloc(&pointer, 1), orErrorInvalidValue);
      },
      testing::ExitedWithCode(0),
      std::string("environment variable ") + name + "='" + value +
          "' is not valid: expected " + accepted);
}

TEST_F(Settings, WrongDeviceCountFailsEveryUse) {
  for (const char* value : {"0", "65", "two", "2 ", "-1", "1e1"}) {
    expect_rejected("OPENREG_DEVICE_COUNT", value, "a whole number from 1 to");
  }
}

TEST_F(Settings, EmptyDeviceCountFailsEveryUse) {
  expect_rejected("OPENREG_DEVICE_COUNT", "", "a whole number from 1 to 64");
}

TEST_F(Settings, WrongDeviceMemoryFailsEveryUse) {
  for (const char* value : {"16GB", "1KiB", "2TiB", "99999999999TiB", "x"}) {
    expect_rejected("OPENREG_DEVICE_MEMORY", value, "a size from 1MiB to 1TiB");
  }
}

TEST_F(Settings, WrongLaunchBlockingFailsEveryUse) {
  expect_rejected("OPENREG_LAUNCH_BLOCKING", "yes", "0 or 1");
}

TEST_F(Settings, WrongIsolationFailsEveryUse) {
  expect_rejected("OPENREG_ISOLATION", "process", "thread");
}

TEST_F(Settings, AreReadFromTheEnvironment) {
  EXPECT_EXIT(
      {
        setenv("OPENREG_DEVICE_COUNT", "64", 1);
        setenv("OPENREG_DEVICE_MEMORY", "3MiB", 1);
        EXPECT_OK(orSetDevice(63));
        std::size_t free = 0;
        std::size_t total = 0;
        EXPECT_OK(orMemGetInfo(&free, &total));
        void* pointer = nullptr;
        EXPECT_OK(orMalloc(&pointer, total));
        EXPECT_EQ(total, std::size_t{3} << 20);
        finish();
      },
      testing::ExitedWithCode(0),
      "^$");
}

int setting_count() {
  int count = 0;
  EXPECT_OK(orGetSettingCount(&count));
  return count;
}

TEST(orGetSettingCount, IsTheNumberOfVariables) {
  int count = 0;
  ASSERT_OK(orGetSettingCount(&count));
  EXPECT_EQ(count, 9);
}

TEST(orGetSetting, SaysWhereEachValueComesFrom) {
  std::set<std::string> names;
  for (int index = 0; index < setting_count(); ++index) {
    orSetting setting = OPENREG_SETTING_INIT;
    ASSERT_OK(orGetSetting(index, &setting));
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    const bool set = std::getenv(setting.name) != nullptr;
    EXPECT_STREQ(setting.source, set ? "environment" : "default");
    EXPECT_STRNE(setting.value, "");
    EXPECT_STRNE(setting.description, "");
  }
}

TEST(orGetSetting, PastTheCountIsInvalidValue) {
  orSetting setting = OPENREG_SETTING_INIT;
  EXPECT_EQ(orGetSetting(setting_count(), &setting), orErrorInvalidValue);
  EXPECT_EQ(orGetSetting(-1, &setting), orErrorInvalidValue);
}

TEST_F(LaunchBlocking, RunsTheKernelBeforeTheLaunchReturns) {
  EXPECT_EXIT(
      {
        setenv("OPENREG_LAUNCH_BLOCKING", "1", 1);
        std::thread::id ran;
        EXPECT_OK(orLaunchKernel(
            nullptr, [&ran] { ran = std::this_thread::get_id(); }));
        EXPECT_EQ(ran, std::this_thread::get_id());
        finish();
      },
      testing::ExitedWithCode(0),
      "^$");
}

TEST_F(LaunchBlocking, FailureIsReportedByTheLaunch) {
  EXPECT_EXIT(
      {
        setenv("OPENREG_LAUNCH_BLOCKING", "1", 1);
        auto value = std::make_shared<int>(1);
        const orError_t error = orLaunchKernel(
            nullptr, [value] { throw std::runtime_error("broken"); });
        EXPECT_EQ(value.use_count(), 1);
        std::fputs(orGetErrorMessage(), stderr);
        EXPECT_OK(orStreamSynchronize(nullptr));
        report(error, orErrorLaunchFailure);
      },
      testing::ExitedWithCode(0),
      "orLaunchKernel: a kernel threw an exception: broken");
}

} // namespace
