// SPDX-License-Identifier: BSD-3-Clause
// The end of a reply: warnings, and how long the reply itself is.
#include "kernel/warnings.h"

#include "device/device.h"

#include <cstdint>
#include <cstring>

namespace openreg::aten {
namespace {

constexpr std::size_t kMostWarnings = 64; // of one kernel; more are dropped

} // namespace

WarningsKept::WarningsKept() {
  if (is_device_process()) {
    guard_.emplace(static_cast<c10::WarningHandler*>(this));
  }
}

void WarningsKept::process(const c10::Warning& warning) {
  if (kept_.size() < kMostWarnings) {
    kept_.push_back(
        {std::holds_alternative<c10::Warning::DeprecationWarning>(
             warning.type()),
         warning.msg()});
  }
}

void WarningsKept::append_to(codec::Bytes& reply) const {
  const std::uint64_t size = reply.size();
  codec::Writer out(reply);
  for (const Kept& each : kept_) {
    out.put(static_cast<std::uint8_t>(each.deprecation));
    out.put_text(each.text);
  }
  out.put(size);
}

codec::ByteSpan repeat_warnings(codec::ByteSpan reply) {
  std::uint64_t size = 0;
  if (reply.size() < sizeof(size)) {
    throw codec::Malformed("a reply is too short");
  }
  const codec::ByteSpan body = reply.first(reply.size() - sizeof(size));
  std::memcpy(&size, body.data() + body.size(), sizeof(size));
  if (size > body.size()) {
    throw codec::Malformed("a reply is longer than it is");
  }
  if (size < body.size()) {
    codec::Reader in(body.subspan(size));
    for (std::size_t i = 0; i < kMostWarnings && !in.at_end(); ++i) {
      const bool deprecation = in.get_flag();
      const std::string text = in.get_text();
      if (deprecation) {
        TORCH_WARN_DEPRECATION(text);
      } else {
        TORCH_WARN(text);
      }
    }
    in.expect_end();
  }
  return body.first(size);
}

} // namespace openreg::aten
