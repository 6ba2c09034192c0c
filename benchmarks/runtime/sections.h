// SPDX-License-Identifier: BSD-3-Clause
// The sections of the benchmark. Each measures its rows.
#pragma once

#include "measure.h"

namespace bench {

void measure_launches(Bench& bench);
void measure_events(Bench& bench);
void measure_streams(Bench& bench);
void measure_allocations(Bench& bench);
void measure_copies(Bench& bench);
void measure_start(Bench& bench);

/// With this option, the program calls run_start_child().
constexpr const char* kStartChild = "--start-child";
/// Runs in a new process for measure_start() and prints its figures.
int run_start_child(const char* library, bool quick);

} // namespace bench
