// SPDX-License-Identifier: BSD-3-Clause
// Lists of bytes, and the Attempt of a thread.
#include "transport/transport.h"

namespace openreg::distributed {
namespace {

thread_local bool t_attempts = false;

} // namespace

size_t total_of(const BytesList& list) {
  size_t total = 0;
  for (const Bytes& each : list) {
    total += each.size;
  }
  return total;
}

BytesList equal_parts(const Bytes& bytes, size_t parts) {
  const size_t size = bytes.size / parts;
  BytesList list;
  for (size_t i = 0; i < parts; ++i) {
    list.push_back(bytes.part(i * size, size));
  }
  return list;
}

Attempt::Attempt() {
  t_attempts = true;
}

Attempt::~Attempt() {
  t_attempts = false;
}

bool Attempt::runs_here() {
  return t_attempts;
}

} // namespace openreg::distributed
