// SPDX-License-Identifier: BSD-3-Clause
// Two copies of the library in one process: the second one returns errors.
#include "every_function.h"

#include <dlfcn.h>
#include <filesystem>

namespace {

/// Returns the path of the library that this program is linked to.
std::string this_copy() {
  return std::filesystem::canonical(OPENREG_LIBRARY);
}

/// A loaded copy of the library's file in a separate folder.
class OtherCopy {
 public:
  OtherCopy() {
    char name[] = "/tmp/openreg-copy-XXXXXX";
    const std::filesystem::path folder = mkdtemp(name);
    path_ = folder / std::filesystem::path(this_copy()).filename();
    std::filesystem::copy_file(this_copy(), path_);
    library_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library_, nullptr) << dlerror();
    std::filesystem::remove_all(folder); // the mapping remains
  }
  OtherCopy(const OtherCopy&) = delete;
  OtherCopy& operator=(const OtherCopy&) = delete;

  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  orError_t use() const {
    return function<orError_t()>("orInit")();
  }
  std::string message() const {
    return function<const char*()>("orGetErrorMessage")();
  }
  const std::string& path() const {
    return path_.native();
  }

 private:
  std::filesystem::path path_;
  void* library_ = nullptr;
};

class OtherCopyInUse : public FreshProcess {};

TEST_F(OtherCopyInUse, FailsAllFunctionsOfThisOneThatUseDevices) {
  EXPECT_EXIT(
      {
        OtherCopy other;
        EXPECT_OK(other.use());
        int refused = 0;
        for (const Row& row : rows()) {
          World world{World::Empty()};
          const orError_t error = row.call(world)();
          int used = 1;
          EXPECT_OK(orIsInitialized(&used));
          EXPECT_EQ(used, 0) << row.name;
          if (error == orErrorNotSupported) {
            EXPECT_MESSAGE(other.path());
            ++refused;
          }
        }
        EXPECT_GE(refused, 10);
        void* block = nullptr;
        EXPECT_EQ(orMalloc(&block, 1), orErrorNotSupported);
        EXPECT_EQ(orMalloc(&block, 1), orErrorNotSupported);
        EXPECT_MESSAGE("load the same file everywhere in the process");
        EXPECT_MESSAGE("this copy is " + this_copy());
        finish();
      },
      testing::ExitedWithCode(0),
      "^$");
}

TEST_F(OtherCopyInUse, IsNotHarmedByThisOne) {
  EXPECT_EXIT(
      {
        OtherCopy other;
        EXPECT_OK(orInit());
        EXPECT_EQ(other.use(), orErrorNotSupported);
        EXPECT_NE(other.message().find(this_copy()), std::string::npos)
            << other.message();
        {
          const Block block(16);
          EXPECT_OK(orMemset(block.get(), 1, 16));
        }
        finish();
      },
      testing::ExitedWithCode(0),
      "^$");
}

TEST_F(OtherCopyInUse, IsAcceptedBeforeItUsesDevices) {
  EXPECT_EXIT(
      {
        OtherCopy other;
        int count = 0;
        EXPECT_OK(other.function<orError_t(int*)>("orGetDeviceCount")(&count));
        EXPECT_OK(orInit());
        finish();
      },
      testing::ExitedWithCode(0),
      "^$");
}

TEST(OtherCopyInAForkedChild, LeavesTheErrorOfTheFork) {
  ASSERT_OK(orInit());
  const OtherCopy other;
  EXPECT_EQ(
      fork_and_run([&] {
        return orInit() == orErrorInitialization &&
                other.use() == orErrorNotSupported
            ? 0
            : 1;
      }),
      0);
}

} // namespace
