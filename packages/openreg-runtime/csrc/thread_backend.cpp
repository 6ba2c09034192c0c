// SPDX-License-Identifier: BSD-3-Clause
// The backend of devices that live in this process.
#include "address_space.h"
#include "backend.h"
#include "error.h"
#include "memory_ranges.h"

#include <cstring>
#include <string>

namespace openreg {
namespace {

class ThreadBackend final : public Backend {
 public:
  explicit ThreadBackend(const AddressSpace& memory) : memory_(memory) {}

  void execute(const Command& command) override {
    std::visit([this](const auto& value) { run(value); }, command);
  }

 private:
  void run(const Launch& launch) {
    launch.run();
  }
  void run(const Copy& copy) {
    std::memmove(
        reach(copy.dst, copy.count), reach(copy.src, copy.count), copy.count);
  }
  void run(const Fill& fill) {
    std::memset(reach(fill.dst, fill.count), fill.value, fill.count);
  }

  /// Where this process can read and write what `pointer` names. The call that
  /// enqueued the command has checked the range, but meanwhile the block may
  /// have been freed.
  std::byte* reach(const void* pointer, std::size_t count) const {
    auto* address = static_cast<std::byte*>(const_cast<void*>(pointer));
    const int device = memory_.device_of(pointer);
    if (device < 0) {
      return address;
    }
    const auto block = find_block(pointer);
    if (!block || address + count > block->begin + block->size) {
      throw Failure(
          orErrorIllegalAddress,
          "a copy or set of " + std::to_string(count) + " bytes reached " +
              hex(pointer) + " of device " + std::to_string(device) +
              ", where no block is allocated any more");
    }
    return address + memory_.distance();
  }

  const AddressSpace& memory_;
};

} // namespace

std::unique_ptr<Backend> make_thread_backend(const AddressSpace& memory) {
  return std::make_unique<ThreadBackend>(memory);
}

} // namespace openreg
