// SPDX-License-Identifier: BSD-3-Clause
// The end of a reply: warnings, and the size of the reply without them.
#include "message/warnings.h"

#include "device/device.h"

#include <cstdint>
#include <cstring>
#include <mutex>
#include <unordered_set>
#include <utility>

namespace openreg::aten {
namespace {

constexpr std::size_t kMaxWarnings = 64; // per kernel; more are dropped

/// Copies a text that is never freed, because PyTorch keeps the pointer.
const char* keep(std::string text) {
  constexpr std::size_t kMaxTexts = 4096;
  static std::mutex mutex;
  static auto* texts = new std::unordered_set<std::string>;
  const std::lock_guard lock(mutex);
  if (texts->size() >= kMaxTexts && texts->count(text) == 0) {
    return "a device kernel";
  }
  return texts->insert(std::move(text)).first->c_str();
}

c10::Warning read_warning(codec::Reader& in) {
  c10::Warning::warning_variant_t type = c10::Warning::UserWarning();
  if (in.get_flag()) {
    type = c10::Warning::DeprecationWarning();
  }
  const bool verbatim = in.get_flag();
  std::string text = in.get_text();
  const char* function = keep(in.get_text());
  const char* file = keep(in.get_text());
  const c10::SourceLocation place{
      function, file, in.get<decltype(c10::SourceLocation::line)>()};
  return c10::Warning(type, place, std::move(text), verbatim);
}

} // namespace

WarningCollector::WarningCollector() {
  if (is_device_process()) {
    guard_.emplace(static_cast<c10::WarningHandler*>(this));
  }
}

void WarningCollector::process(const c10::Warning& warning) {
  if (kept_.size() < kMaxWarnings) {
    kept_.push_back(
        {std::holds_alternative<c10::Warning::DeprecationWarning>(
             warning.type()),
         warning.verbatim(),
         warning.msg(),
         warning.source_location()});
  }
}

void WarningCollector::append_to(codec::Bytes& reply) const {
  const std::uint64_t size = reply.size();
  codec::Writer out(reply);
  for (const Kept& each : kept_) {
    out.put(static_cast<std::uint8_t>(each.deprecation));
    out.put(static_cast<std::uint8_t>(each.verbatim));
    out.put_text(each.text);
    out.put_text(each.place.function);
    out.put_text(each.place.file);
    out.put(each.place.line);
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
    throw codec::Malformed(
        "a reply gives a body size of " + std::to_string(size) +
        " bytes, but has " + std::to_string(body.size()));
  }
  if (size < body.size()) {
    codec::Reader in(body.subspan(size));
    for (std::size_t i = 0; i < kMaxWarnings && !in.at_end(); ++i) {
      c10::warn(read_warning(in));
    }
    in.expect_end();
  }
  return body.first(size);
}

} // namespace openreg::aten
