// SPDX-License-Identifier: BSD-3-Clause
// Runs the tests; one that keeps device memory fails.
#include "support.h"

#include <vector>

namespace {

class LeakCheck : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    int used = 0;
    static_cast<void>(orIsInitialized(&used));
    before_ = used != 0 ? free_memory() : std::vector<std::size_t>();
  }
  void OnTestEnd(const testing::TestInfo&) override {
    int used = 0;
    static_cast<void>(orIsInitialized(&used));
    if (used != 0 && !before_.empty()) {
      EXPECT_EQ(free_memory(), before_) << "the test keeps device memory";
    }
  }

  static std::vector<std::size_t> free_memory() {
    int count = 0;
    EXPECT_OK(orGetDeviceCount(&count));
    std::vector<std::size_t> result;
    for (int device = 0; device < count; ++device) {
      const CurrentDevice current(device);
      std::size_t free = 0;
      std::size_t total = 0;
      EXPECT_OK(orMemGetInfo(&free, &total));
      result.push_back(free);
    }
    return result;
  }

  std::vector<std::size_t> before_;
};

} // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new LeakCheck);
  return RUN_ALL_TESTS();
}
