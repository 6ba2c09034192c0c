// SPDX-License-Identifier: BSD-3-Clause
// The parts of the benchmark; each measures its rows.
#pragma once

#include "measure.h"

namespace bench {

void measure_launches(Bench& bench);
void measure_events(Bench& bench);
void measure_streams(Bench& bench);
void measure_allocations(Bench& bench);
void measure_copies(Bench& bench);
void measure_start(Bench& bench);

/// The option that makes this program run_start_child().
constexpr const char* kStartChild = "--start-child";
/// What a fresh process does for measure_start(): prints its figures.
int run_start_child(const char* library, bool quick);

} // namespace bench
