// SPDX-License-Identifier: BSD-3-Clause
// Detects that all ranks are on one host, and connects them by shared memory.
#include "base/gathered.h"
#include "platform/process.h"
#include "transport/shared/shared_transport.h"

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

namespace openreg::distributed {
namespace {

/// The data that a rank sends to the others.
struct Invitation {
  ProcessPlace place; // equal for ranks that can open each other's files
  int64_t process;
  int64_t file; // of the first rank; -1: none
  uint64_t token;
  uint64_t group; // the first rank's counts
};

uint64_t random_number() {
  std::random_device random;
  return static_cast<uint64_t>(random()) << 32 | random();
}

/// Returns false after an exception, too, because the other ranks wait for this
/// rank's next message.
template <typename Attempt>
bool succeeds(const Attempt& attempt) {
  try {
    return attempt();
  } catch (const std::exception&) {
    return false;
  }
}

} // namespace

std::unique_ptr<SharedTransport> SharedTransport::connect(
    Transport& rendezvous,
    int rank,
    int size,
    bool wanted,
    Milliseconds timeout,
    uint64_t& token) {
  std::unique_ptr<Segment> segment;
  Invitation own{
      place_of_this_process(), process_number(), -1, 0, random_number()};
  const bool offers = rank == 0 && wanted && succeeds([&] {
                        segment = Segment::create(size);
                        return segment != nullptr;
                      });
  if (offers) {
    own.file = segment->file();
    own.token = segment->token();
  }
  const auto gather = [&](const at::Tensor& rows, const at::Tensor& row) {
    rendezvous.allgather(
        equal_parts(Bytes::of(rows), static_cast<size_t>(size)),
        Bytes::of(row),
        timeout);
  };
  const auto all = all_gathered(own, size, gather);
  const Invitation& first = all.front();
  token = first.group;
  std::vector<std::shared_ptr<const Process>> processes;
  const bool joined =
      wanted && first.file >= 0 && succeeds([&] {
        for (const Invitation& each : all) {
          if (each.place != first.place) {
            return false;
          }
          processes.push_back(Process::find(static_cast<int>(each.process)));
          if (!processes.back()) {
            return false;
          }
        }
        if (rank != 0) {
          segment = Segment::open(
              size, static_cast<int>(first.process), first.file, first.token);
        }
        return segment != nullptr;
      });
  const uint8_t answer = joined ? 1 : 0;
  const auto answers = all_gathered(answer, size, gather);
  if (std::count(answers.begin(), answers.end(), 0) > 0) {
    return nullptr;
  }
  segment->close_file();
  return std::unique_ptr<SharedTransport>(new SharedTransport(
      std::move(segment), rank, std::move(processes), timeout));
}

} // namespace openreg::distributed
