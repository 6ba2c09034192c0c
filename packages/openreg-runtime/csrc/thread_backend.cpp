// SPDX-License-Identifier: BSD-3-Clause
// The backend of devices that live in this process.
#include "address_space.h"
#include "backend.h"

#include <cstring>

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
    std::memmove(reach(copy.dst), reach(copy.src), copy.count);
  }
  void run(const Fill& fill) {
    std::memset(reach(fill.dst), fill.value, fill.count);
  }

  /// Where this process can read and write what `pointer` names.
  std::byte* reach(const void* pointer) const {
    auto* address = static_cast<std::byte*>(const_cast<void*>(pointer));
    return memory_.device_of(pointer) >= 0 ? address + memory_.distance()
                                           : address;
  }

  const AddressSpace& memory_;
};

} // namespace

std::unique_ptr<Backend> make_thread_backend(const AddressSpace& memory) {
  return std::make_unique<ThreadBackend>(memory);
}

} // namespace openreg
