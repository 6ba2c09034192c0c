// SPDX-License-Identifier: BSD-3-Clause
// Shared storages, based on the IPC handles of the runtime.
#include "memory/ipc.h"

#include "base/keys.h"
#include "device/device.h"
#include "device/error.h"
#include "device/gil.h"
#include "platform/descriptor.h"
#include "stream/stream.h"
#include "stream/stream_event.h"

#include <c10/util/Exception.h>

#include <cstring>
#include <memory>
#include <utility>

namespace openreg::aten {
namespace {

/// A block of another process, and the descriptor that signals its end to the
/// owner.
class OpenBlock {
 public:
  OpenBlock(c10::DeviceIndex device, int guard)
      : device_(device), guard_(guard) {}
  OpenBlock(const OpenBlock&) = delete;
  OpenBlock& operator=(const OpenBlock&) = delete;
  ~OpenBlock() {
    // A forked child silently drops the objects it inherited.
    if (base_ != nullptr && is_initialized()) {
      // Once the descriptor is closed, the other process may reuse the memory,
      // so pending work must complete first.
      const GilRelease release;
      StreamEvent(current_handle(device_)).wait();
      const orError_t error = orIpcCloseMemHandle(base_);
      if (error != orSuccess) {
        warn_runtime_error(error);
      }
    }
    platform::close_descriptor(guard_);
  }
  std::byte* open(const orIpcMemHandle_t& handle) {
    const CurrentDevice scope(device_);
    OPENREG_CHECK(orIpcOpenMemHandle(&base_, handle, 0));
    return static_cast<std::byte*>(base_);
  }

 private:
  c10::DeviceIndex device_;
  int guard_;
  void* base_ = nullptr;
};

void delete_open_block(void* block) {
  delete static_cast<OpenBlock*>(block);
}

} // namespace

std::pair<std::string, size_t> ipc_handle(const c10::Storage& storage) {
  auto* data = static_cast<std::byte*>(const_cast<void*>(storage.data()));
  TORCH_CHECK(
      storage.data_ptr().get_deleter() != &delete_open_block,
      "a tensor received from another process cannot be sent to a third one: "
      "send a copy, such as tensor.clone()");
  orPointerAttributes block = OPENREG_POINTER_ATTRIBUTES_INIT;
  OPENREG_CHECK(orPointerGetAttributes(&block, data));
  orIpcMemHandle_t handle{};
  OPENREG_CHECK(orIpcGetMemHandle(&handle, data));
  return {
      std::string(
          reinterpret_cast<const char*>(handle.reserved),
          sizeof handle.reserved),
      static_cast<size_t>(data - static_cast<std::byte*>(block.pointer))};
}

c10::Storage open_ipc(
    const std::string& handle,
    c10::DeviceIndex device,
    size_t offset,
    size_t size,
    int guard) {
  auto block = std::make_unique<OpenBlock>(device, guard);
  orIpcMemHandle_t bytes{};
  TORCH_CHECK(
      handle.size() == sizeof bytes.reserved,
      "an IPC handle has ",
      sizeof bytes.reserved,
      " bytes, got ",
      handle.size());
  std::memcpy(bytes.reserved, handle.data(), handle.size());
  std::byte* data = block->open(bytes) + offset;
  return c10::make_storage_impl(
      c10::StorageImpl::use_byte_size_t(),
      size,
      c10::DataPtr(
          data,
          block.release(),
          &delete_open_block,
          c10::Device(kDeviceType, device)),
      /*allocator=*/nullptr,
      /*resizable=*/false,
      c10::Device(kDeviceType, device));
}

} // namespace openreg::aten
