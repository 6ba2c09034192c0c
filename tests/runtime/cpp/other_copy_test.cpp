// SPDX-License-Identifier: BSD-3-Clause
// Two copies of the library in one process: the second one returns errors.
#include "every_function.h"

#include <filesystem>
#if !defined(_WIN32)
#include <dlfcn.h>
#endif

namespace {

/// Returns the path of the library that this program is linked to.
std::string this_copy() {
  return std::filesystem::canonical(OPENREG_LIBRARY).string();
}

/// A loaded copy of the library's file in a separate folder.
class OtherCopy {
 public:
  OtherCopy() {
    const std::filesystem::path folder = make_folder();
    path_ = folder / std::filesystem::path(this_copy()).filename();
    std::filesystem::copy_file(this_copy(), path_);
    load();
    std::error_code ignored; // Windows does not remove a loaded library
    std::filesystem::remove_all(folder, ignored); // the mapping remains
  }
  OtherCopy(const OtherCopy&) = delete;
  OtherCopy& operator=(const OtherCopy&) = delete;

  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(find(name));
  }
  orError_t use() const {
    return function<orError_t()>("orInit")();
  }
  std::string message() const {
    return function<const char*()>("orGetErrorMessage")();
  }
  std::string path() const {
    return path_.string();
  }

 private:
#if defined(_WIN32)
  static std::filesystem::path make_folder() {
    return make_temporary_folder();
  }
  void load() {
    library_ = load_library(path_.string().c_str());
    EXPECT_NE(library_, nullptr);
  }
  void* find(const char* name) const {
    return find_function(library_, name);
  }
#else
  static std::filesystem::path make_folder() {
    char name[] = "/tmp/openreg-copy-XXXXXX";
    return mkdtemp(name);
  }
  void load() {
    library_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library_, nullptr) << dlerror();
  }
  void* find(const char* name) const {
    return dlsym(library_, name);
  }
#endif

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
#if defined(_WIN32)
  GTEST_SKIP() << "Windows does not fork";
#else
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
#endif
}

} // namespace
