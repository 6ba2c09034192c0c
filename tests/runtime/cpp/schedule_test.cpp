// SPDX-License-Identifier: BSD-3-Clause
// Schedules: values, errors, and the order of work.
#include "support.h"

#include <string>

namespace {

/// Runs the test under a schedule, and with idle streams at both ends.
class Scheduled {
 public:
  explicit Scheduled(const char* schedule) {
    EXPECT_OK(orDeviceSynchronize());
    EXPECT_OK(orSetSchedule(schedule));
  }
  Scheduled(const Scheduled&) = delete;
  Scheduled& operator=(const Scheduled&) = delete;
  ~Scheduled() {
    EXPECT_OK(orDeviceSynchronize());
    EXPECT_OK(orSetSchedule("eager"));
  }
};

/// The letters of two streams in the order in which their kernels ran before a
/// wait for the second stream.
std::string order_of(const char* schedule) {
  std::string order;
  const Stream one;
  const Stream other;
  const Scheduled scope(schedule);
  for (int i = 0; i < 8; ++i) {
    EXPECT_OK(orLaunchKernel(one, [&order] { order += 'a'; }));
    EXPECT_OK(orLaunchKernel(other, [&order] { order += 'b'; }));
  }
  EXPECT_OK(orStreamSynchronize(other));
  std::string at_the_wait = order;
  return at_the_wait;
}

TEST(orSetSchedule, LazyRunsOnlyTheAwaitedStream) {
  EXPECT_EQ(order_of("lazy"), "bbbbbbbb");
}

TEST(orSetSchedule, SeedDeterminesTheOrder) {
  const std::string first = order_of("random:5");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(order_of("random:5"), first);
  }
}

TEST(orSetSchedule, MayRepeatTheSchedule) {
  ASSERT_OK(orSetSchedule("eager"));
  ASSERT_OK(orSetSchedule("eager"));
}

TEST(orSetSchedule, RejectsOtherNames) {
  for (const char* name : {"", "Eager", "random", "random:", "random:1x"}) {
    EXPECT_EQ(orSetSchedule(name), orErrorInvalidValue) << name;
  }
}

TEST(orSetSchedule, RejectsPendingWork) {
  const Stream stream;
  const Latch latch(stream);
  EXPECT_EQ(orSetSchedule("lazy"), orErrorNotPermitted);
}

TEST(orGetSchedule, ReturnsTheName) {
  const char* schedule = nullptr;
  ASSERT_OK(orGetSchedule(&schedule));
  EXPECT_STREQ(schedule, "eager");
  const Scheduled scope("random:18446744073709551615");
  ASSERT_OK(orGetSchedule(&schedule));
  EXPECT_STREQ(schedule, "random:18446744073709551615");
}

TEST(orGetScheduleFlag, IsZeroOnlyForEager) {
  const int* flag = nullptr;
  ASSERT_OK(orGetScheduleFlag(&flag));
  EXPECT_EQ(*flag, 0);
  const Scheduled scope("lazy");
  EXPECT_NE(*flag, 0);
}

} // namespace
