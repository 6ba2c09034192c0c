// SPDX-License-Identifier: BSD-3-Clause
// The CUDA keys that have no effect on this device.
#include "memory/allocator_settings.h"

#include "base/keys.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/core/Device.h>

#include <exception>
#include <string>
#include <unordered_set>

namespace openreg::aten {
namespace {

using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;

const std::unordered_set<std::string>& cuda_keys() {
  static const auto* keys = new std::unordered_set<std::string>{
      "backend",
      "graph_capture_record_stream_reuse",
      "per_process_memory_fraction",
      "pinned_num_register_threads",
      "pinned_reserve_segment_size_mb",
      "pinned_use_cuda_host_register",
      "release_lock_on_cudamalloc",
      "throw_on_cudamalloc_oom"};
  return *keys;
}

void warn_without_effect(const std::string& settings) {
  const c10::CachingAllocator::ConfigTokenizer tokens(settings);
  for (size_t place = 0; place < tokens.size(); place += 2) { // and a comma
    const std::string& key = tokens[place];
    place = tokens.skipKey(place);
    const bool known = key == "expandable_segments" || cuda_keys().count(key);
    if (known && tokens[place] != "False" && tokens[place] != "native") {
      TORCH_WARN(
          "PYTORCH_ALLOC_CONF: ",
          key,
          " has no effect on device type ",
          kDeviceType);
    }
  }
}

} // namespace

void read_allocator_settings() {
  try {
    Config::instance();
  } catch (const c10::ValueError&) {
    throw; // the error names the problem
  } catch (const std::exception&) {
    TORCH_CHECK_VALUE(
        false,
        "PYTORCH_ALLOC_CONF cannot be parsed: expected key:value pairs "
        "separated by commas, with numbers as sizes and thresholds");
  }
  warn_without_effect(Config::last_allocator_settings());
}

void register_allocator_settings() {
  // The hook of another device accepts the same keys.
  if (!Config::getConfigParserHook()) {
    Config::registerDeviceConfigParserHook(
        &warn_without_effect, std::unordered_set<std::string>(cuda_keys()));
  }
}

} // namespace openreg::aten
