// SPDX-License-Identifier: BSD-3-Clause
// The contents of the records, by the kind of command.
#include "stream/recorded.h"

#include <type_traits>
#include <variant>

namespace openreg {
namespace {

struct Description {
  orActivityKind kind;
  const char* name;
  std::uint64_t bytes;
  Route route{};
};

Description describe(const LaunchInfo& info) {
  return {
      static_cast<orActivityKind>(info.kind),
      info.name != nullptr ? info.name : "kernel",
      info.bytes,
      {info.direction, info.host_memory}};
}
Description describe(const Launch& launch) {
  return describe(launch.info);
}
Description describe(const Message& message) {
  return describe(message.info);
}
Description describe(const Copy& copy) {
  return {orActivityMemcpy, "memcpy", copy.count, copy.route};
}
Description describe(const std::unique_ptr<const Copy2D>& copy) {
  return {
      orActivityMemcpy, "memcpy2D", copy->width * copy->height, copy->route};
}
Description describe(const Fill& fill) {
  return {orActivityMemset, "memset", fill.count};
}

} // namespace

std::unique_ptr<activity::Ticket> ticket_of(
    const Command& command,
    const StreamPlace& place) {
  const Description what =
      std::visit([](const auto& value) { return describe(value); }, command);
  auto ticket = ticket_of(what.kind, what.name, place);
  if (ticket != nullptr) {
    ticket->record.bytes = what.bytes;
    ticket->record.direction = static_cast<orMemcpyKind>(what.route.direction);
    ticket->record.hostMemory =
        static_cast<orMemoryType>(what.route.host_memory);
  }
  return ticket;
}

std::unique_ptr<activity::Ticket>
ticket_of(orActivityKind kind, const char* name, const StreamPlace& place) {
  auto ticket = activity::make_ticket(kind, place.device, name);
  if (ticket != nullptr) {
    ticket->record.stream = place.stream;
    ticket->record.nested = place.nested ? 1 : 0;
  }
  return ticket;
}

void end(
    activity::Ticket& ticket,
    Lane& lane,
    const std::optional<Error>& error) noexcept {
  const Span span = lane.take_span();
  if (span.ended != 0) {
    ticket.record.started = span.started;
    ticket.record.ended = span.ended;
  }
  activity::end(ticket, error ? error->code : orSuccess);
}

} // namespace openreg
