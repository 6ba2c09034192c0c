// SPDX-License-Identifier: BSD-3-Clause
// Starts and ends the runtime's recording, and passes the trace on.
#include "session.h"

#include "clock.h"

#include <c10/util/Exception.h>
#include <c10/util/hash.h>
#include <torch/csrc/profiler/api.h>

#include <gil_release.h>
#include <limits>
#include <output_base.h>
#include <set>
#include <utility>

namespace openreg::profiler {
namespace {

/// The activity to record for a trace of these types. The runtime's allocations
/// are blocks of PyTorch's pool.
unsigned int kinds_of(const std::set<libkineto::ActivityType>& types) {
  using Type = libkineto::ActivityType;
  const std::pair<Type, orActivityKind> kinds_of_types[] = {
      {Type::CONCURRENT_KERNEL, orActivityKernel},
      {Type::GPU_MEMCPY, orActivityMemcpy},
      {Type::GPU_MEMSET, orActivityMemset},
      {call_type(), orActivityCall}};
  unsigned int kinds = 0;
  for (const auto& [type, kind] : kinds_of_types) {
    kinds |= types.count(type) > 0 ? 1U << kind : 0;
  }
  return kinds;
}

int device_count() {
  int count = 0;
  return orGetDeviceCount(&count) == orSuccess ? count : 0;
}

} // namespace

void Session::complain(const char* what) {
  errors_.push_back(std::string(what) + ": " + orGetErrorMessage());
  TORCH_WARN("The recorded device activity is incomplete: ", errors_.back());
}

void Session::start() {
  to_realtime_ = monotonic_to_realtime();
  recording_ = orActivityEnable(kinds_of(types_), 0) == orSuccess;
  if (!recording_) {
    complain("start");
  }
  status_ = libkineto::TraceStatus::RECORDING;
}

void Session::stop() {
  status_ = libkineto::TraceStatus::PROCESSING;
  if (!std::exchange(recording_, false)) {
    return;
  }
  const GilRelease released;
  if (orActivityDisable() != orSuccess || orActivityFlush(0) != orSuccess) {
    complain("stop");
  }
  std::vector<orActivity> some(4096);
  std::size_t count = some.size();
  std::uint64_t lost = 0;
  while (count == some.size()) {
    std::uint64_t dropped = 0;
    if (orActivityTake(
            some.data(), sizeof(orActivity), some.size(), &count, &dropped) !=
        orSuccess) {
      complain("stop");
      return;
    }
    lost += dropped;
    records_.insert(
        records_.end(),
        some.begin(),
        some.begin() + static_cast<std::ptrdiff_t>(count));
  }
  if (lost > 0) {
    errors_.push_back(std::to_string(lost) + " records found no room");
    TORCH_WARN("The recorded device activity is incomplete: ", errors_.back());
  }
}

void Session::processTrace(libkineto::ActivityLogger& logger) {
  processTrace(logger, nullptr, 0, std::numeric_limits<std::int64_t>::max());
}

void Session::processTrace(
    libkineto::ActivityLogger& logger,
    libkineto::getLinkedActivityCallback linked,
    int64_t begin,
    int64_t end) {
  trace_ = std::make_unique<libkineto::CpuTraceBuffer>();
  trace_->span = libkineto::TraceSpan(begin, end, "OpenReg");
  trace_->gpuOpCount = 0;
  keep_details(add_activities(
      *trace_, records_, to_realtime_, {begin, end}, outer_ranges_, linked));
  std::set<int> devices;
  for (const orActivity& record : records_) {
    if (record.device >= 0) {
      devices.insert(record.device);
    }
  }
  for (const int device : devices) {
    logger.handleDeviceInfo(
        {device,
         libkineto::kExceedMaxPid + device,
         "python",
         "OpenReg " + std::to_string(device)},
        begin);
  }
  for (const auto& activity : trace_->activities) {
    activity->log(logger);
  }
}

std::unique_ptr<libkineto::CpuTraceBuffer> Session::getTraceBuffer() {
  return std::move(trace_);
}

std::vector<libkineto::ResourceInfo> Session::getResourceInfos() {
  std::set<std::pair<int, int>> streams;
  for (const orActivity& record : records_) {
    if (record.device >= 0 && record.stream >= 0) {
      streams.emplace(record.device, record.stream);
    }
  }
  std::vector<libkineto::ResourceInfo> infos;
  for (const auto& [device, stream] : streams) {
    const std::string name = stream == 0 ? std::string("stream 0 (default)")
                                         : "stream " + std::to_string(stream);
    infos.push_back({stream, stream, device, name});
  }
  return infos;
}

std::string Session::getDeviceProperties() {
  std::string text;
  for (int device = 0; device < device_count(); ++device) {
    orDeviceProp prop = OPENREG_DEVICE_PROP_INIT;
    if (orGetDeviceProperties(&prop, device) != orSuccess) {
      continue;
    }
    text += text.empty() ? "" : ", ";
    text += "{\"id\": " + std::to_string(device) + ", \"name\": \"" +
        prop.name +
        "\", \"totalGlobalMem\": " + std::to_string(prop.totalGlobalMem) +
        ", \"computeMajor\": " + std::to_string(prop.major) +
        ", \"computeMinor\": " + std::to_string(prop.minor) +
        ", \"numSms\": " + std::to_string(prop.multiProcessorCount) + "}";
  }
  return text;
}

// PyTorch calls these around each operator, so a failure here would repeat that
// often.
void Session::pushCorrelationId(uint64_t id) {
  static_cast<void>(orActivityPushId(orActivityIdExternal, id));
}

void Session::popCorrelationId() {
  std::uint64_t id = 0;
  static_cast<void>(orActivityPopId(orActivityIdExternal, &id));
}

void Session::pushUserCorrelationId(uint64_t id) {
  if (types_.count(libkineto::ActivityType::GPU_USER_ANNOTATION) == 0) {
    return;
  }
  std::uint64_t outer = 0;
  static_cast<void>(orActivityPopId(orActivityIdUser, &outer));
  if (outer != 0) {
    static_cast<void>(orActivityPushId(orActivityIdUser, outer));
    const std::lock_guard lock(ranges_mutex_);
    outer_ranges_.emplace(id, outer);
  }
  static_cast<void>(orActivityPushId(orActivityIdUser, id));
}

void Session::popUserCorrelationId() {
  std::uint64_t id = 0;
  static_cast<void>(orActivityPopId(orActivityIdUser, &id));
}

} // namespace openreg::profiler
