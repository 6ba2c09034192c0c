// SPDX-License-Identifier: BSD-3-Clause
// A recording, from the start of torch.profiler to its trace.
#pragma once

#include "trace.h"

#include <openreg/activity.h>

#include <IActivityProfiler.h>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace openreg::profiler {

class Session final : public libkineto::IActivityProfilerSession {
 public:
  /// Records activities of these types.
  explicit Session(const std::set<libkineto::ActivityType>& types)
      : types_(types) {}

  void start() override;
  /// Waits for the work enqueued since the start, on all devices.
  void stop() override;
  std::vector<std::string> errors() override {
    return errors_;
  }

  void processTrace(libkineto::ActivityLogger& logger) override;
  void processTrace(
      libkineto::ActivityLogger& logger,
      libkineto::getLinkedActivityCallback linked,
      int64_t begin,
      int64_t end) override;
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override;

  /// There are several devices; processTrace() passes them to the logger.
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    return nullptr;
  }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override;
  std::string getDeviceProperties() override;

  // The calling thread's operator and range.
  void pushCorrelationId(uint64_t id) override;
  void popCorrelationId() override;
  void pushUserCorrelationId(uint64_t id) override;
  void popUserCorrelationId() override;

 private:
  void complain(const char* what);

  const std::set<libkineto::ActivityType> types_;
  bool recording_ = false;
  std::int64_t to_realtime_ = 0;
  std::vector<orActivity> records_;
  std::vector<std::string> errors_;
  std::mutex ranges_mutex_;
  Ranges outer_ranges_;
  std::unique_ptr<libkineto::CpuTraceBuffer> trace_;
};

} // namespace openreg::profiler
