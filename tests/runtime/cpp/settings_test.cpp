// SPDX-License-Identifier: BSD-3-Clause
// Environment variables: values, errors, and blocking launches.
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
#if defined(_WIN32)
  GTEST_SKIP() << "Windows has no empty environment variables";
#else
  expect_rejected("OPENREG_DEVICE_COUNT", "", "a whole number from 1 to 64");
#endif
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
  expect_rejected(
      "OPENREG_ISOLATION", "subprocess", "thread, loopback or process");
}

#if defined(_WIN32)
TEST_F(Settings, DeviceProcessesAreRefused) {
  expect_rejected(
      "OPENREG_ISOLATION", "process", "thread or loopback on this system");
}
#endif

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
  EXPECT_GE(count, 10); // plus settings registered by other tests
}

TEST(orGetSetting, ReturnsTheSourceOfEachValue) {
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

orSetting setting_of(const char* name) {
  orSetting setting = OPENREG_SETTING_INIT;
  EXPECT_OK(orGetSettingByName(name, &setting));
  return setting;
}

TEST(orGetSettingByName, ReturnsTheSettingOfTheIndex) {
  for (int index = 0; index < setting_count(); ++index) {
    orSetting setting = OPENREG_SETTING_INIT;
    ASSERT_OK(orGetSetting(index, &setting));
    orSetting found = OPENREG_SETTING_INIT;
    ASSERT_OK(orGetSettingByName(setting.name, &found));
    EXPECT_EQ(found.value, setting.value);
  }
}

TEST(orGetSettingByName, OfAnotherNameIsInvalidValue) {
  orSetting setting = OPENREG_SETTING_INIT;
  EXPECT_EQ(orGetSettingByName("OPENREG_X", &setting), orErrorInvalidValue);
  EXPECT_MESSAGE("name 'OPENREG_X' is not the name of a setting");
}

TEST_F(Settings, HaveTheirNumbers) {
  EXPECT_EXIT(
      {
        setenv("OPENREG_DEVICE_COUNT", "3", 1);
        setenv("OPENREG_DEVICE_MEMORY", "2MiB", 1);
        setenv("OPENREG_MEMORY_CHECK", "1", 1);
        EXPECT_EQ(setting_of("OPENREG_DEVICE_COUNT").number, 3u);
        EXPECT_EQ(setting_of("OPENREG_DEVICE_MEMORY").number, 2u << 20);
        EXPECT_EQ(setting_of("OPENREG_MEMORY_CHECK").number, 1u);
        EXPECT_EQ(setting_of("OPENREG_ISOLATION").number, 0u);
        EXPECT_EQ(setting_of("OPENREG_ISOLATION").names, nullptr);
        finish();
      },
      testing::ExitedWithCode(0),
      "^$");
}

TEST_F(Settings, DisableIsSplitIntoNamesAlsoWhereTheOthersAreWrong) {
  EXPECT_EXIT(
      {
        setenv("OPENREG_DEVICE_COUNT", "many", 1);
        setenv("OPENREG_DISABLE", " one,, two words\t,none", 1);
        const orSetting setting = setting_of("OPENREG_DISABLE");
        EXPECT_STREQ(setting.value, " one,, two words\t,none");
        ASSERT_EQ(setting.nameCount, 2u);
        EXPECT_STREQ(setting.names[0], "one");
        EXPECT_STREQ(setting.names[1], "two words");
        finish();
      },
      testing::ExitedWithCode(0),
      "^$");
}

TEST(orGetSettingByName, DisableIsEmptyByDefault) {
  const orSetting setting = setting_of("OPENREG_DISABLE");
  EXPECT_STREQ(setting.value, "none");
  EXPECT_EQ(setting.names, nullptr);
  EXPECT_EQ(setting.nameCount, 0u);
}

TEST_F(Settings, DeviceIsOpenregOrCuda) {
  const auto error = [] {
    orSetting setting = OPENREG_SETTING_INIT;
    return orGetSettingByName("OPENREG_DEVICE", &setting);
  };
  EXPECT_EXIT(
      {
        setenv("OPENREG_DEVICE", "cuda", 1);
        EXPECT_STREQ(setting_of("OPENREG_DEVICE").value, "cuda");
        finish();
      },
      testing::ExitedWithCode(0),
      "^$");
  EXPECT_EXIT(
      {
        setenv("OPENREG_DEVICE", "xpu", 1);
        EXPECT_EQ(error(), orErrorInvalidValue);
        finish();
      },
      testing::ExitedWithCode(0),
      "^$");
}

constexpr const char* kText = "of a test";

TEST(orRegisterSetting, AddsTheVariableToTheSettings) {
  const int before = setting_count();
  setenv("OPENREG_TEST_NUMBER", "70000", 1);
  ASSERT_OK(
      orRegisterSetting("OPENREG_TEST_NUMBER", "1", orSettingNumber, kText));
  ASSERT_OK(
      orRegisterSetting("OPENREG_TEST_UNSET", "12", orSettingNumber, kText));
  unsetenv("OPENREG_TEST_NUMBER"); // already read
  EXPECT_EQ(setting_count(), before + 2);
  orSetting last = OPENREG_SETTING_INIT;
  ASSERT_OK(orGetSetting(before, &last));
  EXPECT_STREQ(last.name, "OPENREG_TEST_NUMBER");
  EXPECT_STREQ(last.description, kText);
  EXPECT_STREQ(last.source, "environment");
  EXPECT_EQ(last.number, 70000u);
  EXPECT_STREQ(setting_of("OPENREG_TEST_UNSET").source, "default");
  EXPECT_EQ(setting_of("OPENREG_TEST_UNSET").number, 12u);
}

TEST(orRegisterSetting, TwiceInTheSameWayDoesNothing) {
  ASSERT_OK(
      orRegisterSetting("OPENREG_TEST_TWICE", "1", orSettingSwitch, kText));
  const int before = setting_count();
  EXPECT_OK(
      orRegisterSetting("OPENREG_TEST_TWICE", "1", orSettingSwitch, kText));
  EXPECT_EQ(setting_count(), before);
}

TEST(orRegisterSetting, OfANameThatIsTakenIsInvalidValue) {
  ASSERT_OK(
      orRegisterSetting("OPENREG_TEST_TAKEN", "1", orSettingSwitch, kText));
  for (const char* name :
       {"OPENREG_TEST_TAKEN", "OPENREG_DEVICE_COUNT", "OPENREG_DISABLE"}) {
    EXPECT_EQ(
        orRegisterSetting(name, "1", orSettingNumber, kText),
        orErrorInvalidValue)
        << name;
    EXPECT_MESSAGE(std::string("name '") + name + "' is already the name");
  }
  EXPECT_EQ(
      orRegisterSetting("OPENREG_TEST_TAKEN", "0", orSettingSwitch, kText),
      orErrorInvalidValue);
}

TEST(orRegisterSetting, OfAnotherKindIsInvalidValue) {
  const auto kind = static_cast<orSettingKind>(2);
  EXPECT_EQ(
      orRegisterSetting("OPENREG_TEST_KIND", "1", kind, kText),
      orErrorInvalidValue);
  EXPECT_MESSAGE("kind 2 is not an orSettingKind");
}

constexpr orSetting kNoSetting = OPENREG_SETTING_INIT; // no macro in a macro

TEST_F(Settings, RegisteredWrongValueFailsCallsThatReturnSettings) {
  struct Case {
    orSettingKind kind;
    const char* value;
    const char* accepted;
  };
  for (const Case& each :
       {Case{orSettingSwitch, "yes", "0 or 1"},
        Case{orSettingSwitch, "01", "0 or 1"},
        Case{orSettingNumber, "-1", "a whole number"},
        Case{orSettingNumber, "1 ", "a whole number"},
#if !defined(_WIN32) // which has no empty environment variables
        Case{orSettingNumber, "", "a whole number"},
#endif
        Case{orSettingNumber, "99999999999999999999", "a whole number"}}) {
    EXPECT_EXIT(
        {
          setenv("OPENREG_TEST_WRONG", each.value, 1);
          EXPECT_OK(
              orRegisterSetting("OPENREG_TEST_WRONG", "0", each.kind, kText));
          int count = 0;
          EXPECT_EQ(orGetSettingCount(&count), orErrorInvalidValue);
          orSetting setting = kNoSetting;
          EXPECT_EQ(orGetSetting(0, &setting), orErrorInvalidValue);
          EXPECT_OK(orGetSettingByName("OPENREG_DEVICE_COUNT", &setting));
          report(
              orGetSettingByName("OPENREG_TEST_WRONG", &setting),
              orErrorInvalidValue);
        },
        testing::ExitedWithCode(0),
        std::string("environment variable OPENREG_TEST_WRONG='") + each.value +
            "' is not valid: expected " + each.accepted);
  }
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
