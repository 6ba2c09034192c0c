// SPDX-License-Identifier: BSD-3-Clause
// Checks that the header compiles without warnings in a standard from C++11 on,
// and that a program can use it. Returns 0 on success.
#include <openreg/openreg.h>

#include <cstdio>
#include <initializer_list>

namespace {

void set_flag(void* args) {
  *static_cast<int*>(args) = 1;
}

orError_t use() {
  orDeviceProp prop = OPENREG_DEVICE_PROP_INIT;
  orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
  orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
  orSetting setting = OPENREG_SETTING_INIT;
  orFailureSpec spec = OPENREG_FAILURE_SPEC_INIT;
  spec.error = orErrorMemoryAllocation;
  void* block = nullptr;
  orFailure_t failure = nullptr;
  int flag = 0;
  for (const orError_t error :
       {orGetDeviceProperties(&prop, 0),
        orMalloc(&block, 16),
        orPointerGetAttributes(&attributes, block),
        orFree(block),
        orGetResourceUsage(&usage),
        orGetSetting(0, &setting),
        orFailureInject(&failure, &spec),
        orFailureRemove(failure),
        orLaunchKernel(nullptr, set_flag, &flag, nullptr),
#if __cplusplus >= 201703L
        orLaunchKernel(nullptr, [&flag] { flag += flag; }),
#endif
        orDeviceSynchronize()}) {
    if (error != orSuccess) {
      return error;
    }
  }
  const int expected = __cplusplus >= 201703L ? 2 : 1;
  return flag == expected && attributes.size == 16 ? orSuccess : orErrorUnknown;
}

} // namespace

int main() {
  const orError_t error = use();
  std::printf("%s %s\n", orGetErrorName(error), orGetErrorMessage());
  return error == orSuccess ? 0 : 1;
}
