// SPDX-License-Identifier: BSD-3-Clause
// Helpers for tests of pools and their allocations.
#pragma once

#include "support.h"

#include <cstdint>

inline constexpr std::size_t kSize = std::size_t{1} << 20;

inline char* allocate(std::size_t size, orStream_t stream) {
  void* pointer = nullptr;
  EXPECT_OK(orMallocAsync(&pointer, size, stream));
  return static_cast<char*>(pointer);
}

inline orMemPool_t default_pool(int device = 0) {
  orMemPool_t pool = nullptr;
  EXPECT_OK(orDeviceGetDefaultMemPool(&pool, device));
  return pool;
}

inline std::uint64_t attribute(orMemPool_t pool, orMemPoolAttr attr) {
  std::uint64_t value = ~std::uint64_t{0};
  EXPECT_OK(orMemPoolGetAttribute(pool, attr, &value));
  return value;
}
inline std::uint64_t reserved(orMemPool_t pool) {
  return attribute(pool, orMemPoolAttrReservedMemCurrent);
}
inline std::uint64_t used(orMemPool_t pool) {
  return attribute(pool, orMemPoolAttrUsedMemCurrent);
}

inline void set(orMemPool_t pool, orMemPoolAttr attr, std::uint64_t value) {
  EXPECT_OK(orMemPoolSetAttribute(pool, attr, &value));
}

inline char first_byte(const void* pointer) {
  char value = -1;
  EXPECT_OK(orMemcpy(&value, pointer, 1, orMemcpyDeviceToHost));
  return value;
}

/// A pool that exists during the scope.
class Pool {
 public:
  explicit Pool(std::size_t max_size = 0, int device = 0) {
    const orMemPoolProps props{sizeof(props), device, max_size};
    EXPECT_OK(orMemPoolCreate(&handle_, &props));
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    EXPECT_OK(orMemPoolDestroy(handle_));
  }
  operator orMemPool_t() const {
    return handle_;
  }

 private:
  orMemPool_t handle_ = nullptr;
};
