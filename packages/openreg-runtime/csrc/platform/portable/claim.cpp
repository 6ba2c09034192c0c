// SPDX-License-Identifier: BSD-3-Clause
// Claims as identities of processes, for systems whose memory files have no
// locks. A claim of a process that has ended does not count.
#include "platform/mapping.h"
#include "platform/sharing.h"

namespace openreg::platform {
namespace {

/// The mapped claims at a position of a file.
class Claims {
 public:
  Claims(const File& file, std::uint64_t position) noexcept {
    const std::uint64_t lead = position % page_size();
    result_ =
        map(file, position - lead, page_size(), /*inherited=*/false, page_);
    if (result_) {
      room_ = reinterpret_cast<ClaimRoom*>(page_ + lead);
    }
  }
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;
  ~Claims() {
    if (page_ != nullptr) {
      unmap(page_, page_size());
    }
  }

  Result result() const noexcept {
    return result_;
  }
  ClaimRoom& room() const noexcept {
    return *room_;
  }

 private:
  Result result_;
  std::byte* page_ = nullptr;
  ClaimRoom* room_ = nullptr;
};

/// Takes the place of a process that has ended, or an empty place.
bool take(std::atomic<ProcessId>& place, ProcessId self) noexcept {
  ProcessId owner = place.load();
  return (owner == 0 || !alive(owner)) &&
      place.compare_exchange_strong(owner, self);
}

} // namespace

Result begin_claim(const File& file, std::uint64_t position, int& claim) {
  ProcessId self = 0;
  if (const Result found = this_process(self); !found) {
    return found;
  }
  const Claims claims(file, position);
  if (!claims.result()) {
    return claims.result();
  }
  for (claim = 0; claim < static_cast<int>(ClaimRoom::kMost); ++claim) {
    if (take(claims.room().claims[static_cast<std::size_t>(claim)], self)) {
      return {};
    }
  }
  return Result::full();
}

void end_claim(const File& file, std::uint64_t position, int claim) noexcept {
  const Claims claims(file, position);
  if (claims.result()) {
    claims.room().claims[static_cast<std::size_t>(claim)].store(0);
  }
}

bool is_claimed(const File& file, std::uint64_t position) noexcept {
  const Claims claims(file, position);
  if (claims.result()) {
    for (const auto& place : claims.room().claims) {
      const ProcessId owner = place.load();
      if (owner != 0 && alive(owner)) {
        return true;
      }
    }
  }
  return false;
}

} // namespace openreg::platform
