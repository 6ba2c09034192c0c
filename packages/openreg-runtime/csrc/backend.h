// SPDX-License-Identifier: BSD-3-Clause
// The boundary behind which a device does its work.
//
// Streams and events order commands; a backend carries one out. Everything that
// touches device bytes is a command, so a device that lives elsewhere (another
// process) is another Backend and nothing above it changes.
#pragma once

#include <openreg/openreg.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <variant>

namespace openreg {

class AddressSpace;

/// A kernel with its argument block, which is the caller's until adopt().
class Launch {
 public:
  Launch(orKernel_t kernel, void* args, orKernel_t cleanup)
      : kernel_(kernel), args_(args), cleanup_(cleanup) {}
  Launch(Launch&& other) noexcept
      : kernel_(other.kernel_),
        args_(other.args_),
        cleanup_(other.cleanup_),
        owns_(std::exchange(other.owns_, false)) {}
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  Launch& operator=(Launch&&) = delete;
  ~Launch() {
    if (owns_ && cleanup_ != nullptr) {
      cleanup_(args_);
    }
  }

  void run() const {
    kernel_(args_);
  }
  /// From here on the argument block goes with the object.
  void adopt() noexcept {
    owns_ = true;
  }

 private:
  orKernel_t kernel_;
  void* args_;
  orKernel_t cleanup_;
  bool owns_ = false;
};

/// Bytes between two addresses, each a device pointer or host memory. The
/// ranges may overlap.
struct Copy {
  void* dst;
  const void* src;
  std::size_t count;
};

struct Fill {
  void* dst;
  unsigned char value;
  std::size_t count;
};

using Command = std::variant<Launch, Copy, Fill>;

class Backend {
 public:
  virtual ~Backend() = default;
  /// Carries `command` out on the calling thread. Throws what a kernel throws,
  /// and orErrorIllegalAddress for bytes that are in no live block.
  virtual void execute(const Command& command) = 0;
};

/// A device in this process: commands run on the calling thread.
std::unique_ptr<Backend> make_thread_backend(const AddressSpace& memory);

} // namespace openreg
