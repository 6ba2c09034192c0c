// SPDX-License-Identifier: BSD-3-Clause
// Which threads attempt something.
#include "transport.h"

namespace openreg::distributed {
namespace {

thread_local bool t_attempts = false;

} // namespace

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
