// SPDX-License-Identifier: BSD-3-Clause
// Shared storages, on the runtime's IPC handles.
#include "device/ipc.h"

#include "device/device.h"
#include "device/error.h"

#include <c10/util/Exception.h>

#include <cstring>
#include <memory>
#include <unistd.h>
#include <utility>

namespace openreg::aten {
namespace {

/// A block of another process, and the descriptor that tells it of the end.
class OpenBlock {
 public:
  explicit OpenBlock(int guard) : guard_(guard) {}
  OpenBlock(const OpenBlock&) = delete;
  OpenBlock& operator=(const OpenBlock&) = delete;
  ~OpenBlock() {
    if (base_ != nullptr) {
      const orError_t error = orIpcCloseMemHandle(base_);
      // A forked child drops the objects that it inherited without a word.
      if (error != orSuccess && error != orErrorInitialization) {
        warn_runtime_error(error);
      }
    }
    ::close(guard_);
  }
  std::byte* open(const orIpcMemHandle_t& handle) {
    OPENREG_CHECK(orIpcOpenMemHandle(&base_, handle, 0));
    return static_cast<std::byte*>(base_);
  }

 private:
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
      "a tensor that was received from another process can not be sent on: "
      "send a copy, tensor.clone()");
  orPointerAttributes block{};
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
  auto block = std::make_unique<OpenBlock>(guard);
  orIpcMemHandle_t bytes{};
  TORCH_CHECK(
      handle.size() == sizeof bytes.reserved,
      "an IPC handle has ",
      sizeof bytes.reserved,
      " bytes, got ",
      handle.size());
  std::memcpy(bytes.reserved, handle.data(), handle.size());
  const CurrentDevice scope(device);
  std::byte* data = block->open(bytes) + offset;
  return {
      c10::Storage::use_byte_size_t(),
      size,
      c10::DataPtr(
          data,
          block.release(),
          &delete_open_block,
          c10::Device(c10::kPrivateUse1, device)),
      /*allocator=*/nullptr,
      /*resizable=*/false};
}

} // namespace openreg::aten
