// SPDX-License-Identifier: BSD-3-Clause
// The memory of the machine, with limits of control groups in a folder that
// stands for the file system.
#include "settings/machine_memory.h"

#include "support.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

using openreg::machine_memory;
namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class MachineMemory : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "openreg_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override {
    fs::remove_all(root_);
  }

  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  fs::path root_;
};

TEST_F(MachineMemory, IsThePhysicalMemoryWithoutGroups) {
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_EQ(machine_memory(root_), pages * size);
}

TEST_F(MachineMemory, IsTheLimitOfTheGroup) {
  write("proc/self/cgroup", "0::/user/job\n");
  write("sys/fs/cgroup/user/job/memory.max", "104857600\n");
  EXPECT_EQ(machine_memory(root_), 100 * kMiB);
}

TEST_F(MachineMemory, IsTheLimitOfAGroupOutside) {
  write("proc/self/cgroup", "0::/user/job\n");
  write("sys/fs/cgroup/memory.max", "209715200\n");
  write("sys/fs/cgroup/user/memory.max", "104857600\n");
  write("sys/fs/cgroup/user/job/memory.max", "157286400\n");
  EXPECT_EQ(machine_memory(root_), 100 * kMiB);
}

TEST_F(MachineMemory, IsTheLimitOfTheContainer) {
  // The group has its name outside of the container.
  write("proc/self/cgroup", "0::/container/1234\n");
  write("sys/fs/cgroup/memory.max", "104857600\n");
  EXPECT_EQ(machine_memory(root_), 100 * kMiB);
}

TEST_F(MachineMemory, IsTheLimitOfVersion1) {
  write(
      "proc/self/cgroup",
      "5:name=memory:/other\n4:cpu,memory:/job\n1:cpuset:/\n0::/\n");
  write("sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1048576\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "104857600\n");
  EXPECT_EQ(machine_memory(root_), 100 * kMiB);
}

TEST_F(MachineMemory, IsThePhysicalMemoryIfNoGroupHasALimit) {
  const std::uint64_t physical = machine_memory(root_);
  write("proc/self/cgroup", "4:memory:/job\n0::/job\nnot a line");
  write("sys/fs/cgroup/job/memory.max", "max\n");
  write(
      "sys/fs/cgroup/memory/job/memory.limit_in_bytes",
      "9223372036854771712\n");
  EXPECT_EQ(machine_memory(root_), physical);
}

} // namespace
