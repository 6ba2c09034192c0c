// SPDX-License-Identifier: BSD-3-Clause
// Extensible structs: the library accesses only the caller's size.
#include "base/struct_size.h"

#include "support.h"

#include <cstring>

namespace {

/// A later version of a struct.
struct Grown {
  std::size_t structSize;
  std::uint64_t old;
  std::uint64_t appended;
};

/// The struct of a caller compiled with the first version, and the bytes behind
/// it.
struct First {
  std::size_t structSize;
  std::uint64_t old;
  std::uint64_t not_of_the_struct;
};

} // namespace

template <>
inline constexpr std::size_t openreg::kFirstSize<Grown> =
    offsetof(First, not_of_the_struct);

namespace {

constexpr std::size_t kFirst = openreg::kFirstSize<Grown>;

Grown as_grown(const First& first) {
  Grown result{};
  static_assert(sizeof(result) == sizeof(first));
  std::memcpy(&result, &first, sizeof(result));
  return result;
}

TEST(StructSize, OfTheFirstVersionIsWrittenNoFurther) {
  Grown object = as_grown({kFirst, 0, 42});
  openreg::write_struct(&object, "object", Grown{sizeof(Grown), 1, 2});
  EXPECT_EQ(object.structSize, kFirst);
  EXPECT_EQ(object.old, 1u);
  EXPECT_EQ(object.appended, 42u);
}

TEST(StructSize, OfTheFirstVersionIsReadNoFurther) {
  const Grown object = as_grown({kFirst, 1, 42});
  const Grown read = openreg::read_struct(&object, "object");
  EXPECT_EQ(read.old, 1u);
  EXPECT_EQ(read.appended, 0u);
}

TEST(StructSize, OfThisVersionIsWrittenAndReadToItsEnd) {
  Grown object{sizeof(Grown), 0, 0};
  openreg::write_struct(&object, "object", Grown{0, 1, 2});
  EXPECT_EQ(object.structSize, sizeof(Grown));
  EXPECT_EQ(openreg::read_struct(&object, "object").appended, 2u);
}

/// Calls a function with a struct whose structSize is wrong in several ways.
template <typename Struct, typename Function>
void expect_checked(const char* argument, Struct good, Function call) {
  for (const std::size_t size :
       {std::size_t(0), sizeof(std::size_t), sizeof(Struct) + 1}) {
    Struct wrong = good;
    wrong.structSize = size;
    const Struct before = wrong;
    EXPECT_EQ(call(&wrong), orErrorInvalidValue) << size;
    EXPECT_MESSAGE(
        std::string(argument) + ".structSize " + std::to_string(size));
    EXPECT_MESSAGE(std::to_string(sizeof(Struct)) + " bytes");
    EXPECT_EQ(std::memcmp(&wrong, &before, sizeof(wrong)), 0) << size;
  }
  EXPECT_EQ(call(&good), orSuccess) << orGetErrorMessage();
  EXPECT_EQ(good.structSize, sizeof(Struct));
}

TEST(StructSize, OfNoVersionIsInvalidValueAndNothingIsWritten) {
  expect_checked(
      "prop", orDeviceProp(OPENREG_DEVICE_PROP_INIT), [](orDeviceProp* prop) {
        return orGetDeviceProperties(prop, 0);
      });
  expect_checked(
      "usage",
      orResourceUsage(OPENREG_RESOURCE_USAGE_INIT),
      [](orResourceUsage* usage) { return orGetResourceUsage(usage); });
  expect_checked(
      "setting", orSetting(OPENREG_SETTING_INIT), [](orSetting* setting) {
        return orGetSetting(0, setting);
      });
  expect_checked(
      "attributes",
      orPointerAttributes(OPENREG_POINTER_ATTRIBUTES_INIT),
      [](orPointerAttributes* attributes) {
        return orPointerGetAttributes(attributes, nullptr);
      });
  orFailureSpec spec = OPENREG_FAILURE_SPEC_INIT;
  spec.error = orErrorMemoryAllocation;
  expect_checked("spec", spec, [](orFailureSpec* given) {
    orFailure_t failure = nullptr;
    const orError_t error = orFailureInject(&failure, given);
    if (error == orSuccess) {
      EXPECT_OK(orFailureRemove(failure));
    }
    return error;
  });
}

} // namespace
