// SPDX-License-Identifier: BSD-3-Clause
// The hooks that PyTorch's C++ libraries above c10 call.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

// [step 9]
#include "generator.h"
// [step end]
#include "runtime.h"

namespace torch_minimal {
namespace {

orPointerAttributes attributes_of(const void* data) {
  orPointerAttributes found = OPENREG_POINTER_ATTRIBUTES_INIT;
  check(orPointerGetAttributes(&found, data));
  return found;
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override {
    int initialized = 0;
    check(orIsInitialized(&initialized));
    return initialized != 0;
  }
  void init() const override { check(orInit()); }
  c10::DeviceIndex deviceCount() const override { return device_count(); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { exchange_device(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return exchange_device(device);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return exchange_device(device);
  }
  at::Device getDeviceFromPtr(void* data) const override {
    const orPointerAttributes found = attributes_of(data);
    TORCH_CHECK(found.type == orMemoryTypeDevice, "the pointer is not in device memory");
    return {c10::kPrivateUse1, static_cast<c10::DeviceIndex>(found.device)};
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size) const override {
    resize_storage(storage, size);
  }

  // [step 8]
  // [docs: hooks-pinned]
  bool isPinnedPtr(const void* data) const override {
    return !in_bad_fork() && attributes_of(data).type == orMemoryTypeHost;
  }
  at::Allocator* getPinnedMemoryAllocator() const override {
    return at::getHostAllocator(c10::kPrivateUse1);
  }
  // [docs: end]
  // [step end]

  // [step 9]
  // [docs: hooks-generator]
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return default_generator(device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return new_generator(device);
  }
  // [docs: end]
  // [step end]
};

// [docs: hooks-registration]
const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();
// [docs: end]

} // namespace
} // namespace torch_minimal
