// SPDX-License-Identifier: BSD-3-Clause
// Helpers for tests of shared blocks.
#pragma once

#include "two_processes.h"

inline orIpcMemHandle_t handle_of(void* pointer) {
  orIpcMemHandle_t handle{};
  EXPECT_OK(orIpcGetMemHandle(&handle, pointer));
  return handle;
}

/// A block of another process, open during the scope.
class OpenedBlock {
 public:
  explicit OpenedBlock(const orIpcMemHandle_t& handle) {
    EXPECT_OK(orIpcOpenMemHandle(&pointer_, handle, 0));
  }
  OpenedBlock(const OpenedBlock&) = delete;
  OpenedBlock& operator=(const OpenedBlock&) = delete;
  ~OpenedBlock() {
    EXPECT_OK(orIpcCloseMemHandle(pointer_));
  }
  char* get(std::size_t offset = 0) const {
    return static_cast<char*>(pointer_) + offset;
  }

 private:
  void* pointer_ = nullptr;
};

inline char first_byte(const void* pointer) {
  char value = -1;
  EXPECT_OK(orMemcpy(&value, pointer, 1, orMemcpyDeviceToHost));
  return value;
}

/// Offers one block until the other process is done with it.
inline void offer_a_block(OtherProcess other) {
  const Block block(1000);
  ASSERT_OK(orMemset(block.get(), 1, 1000));
  other.send(handle_of(block.get()));
  other.wait();
}

/// Returns how many shared blocks this process has open.
inline std::size_t openings() {
  orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
  EXPECT_OK(orGetResourceUsage(&usage));
  return usage.ipcMappings;
}
