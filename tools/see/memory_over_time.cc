#include "tools/see/memory_over_time.h"

#include <algorithm>
#include <limits>

#include "runtime/memory/allocator.h"
#include "runtime/tensor/tensor_base.h"

namespace ramet {
namespace see {
namespace {

constexpr uint64_t kStays = std::numeric_limits<uint64_t>::max();

}  // namespace

MemoryOverTime::MemoryOverTime() {
  const auto look = [this](ramet::Device d) {
    Device& device = devices_[d.ordinal()];
    device.current = device.at_begin = memory_stats(d).current;
    device.curve.push_back({0, device.current});
  };
  for (int i = 0; i < cpu_device_count(); ++i)
    look(ramet::Device(kCPU, static_cast<DeviceIndex>(i)));
  for (int i = 0; i < cuda::device_count(); ++i)
    look(ramet::Device(kCUDA, static_cast<DeviceIndex>(i)));
}

void MemoryOverTime::on_made(const MemoryEvent& e, uint64_t time, const std::string& scope) {
  const int ordinal = e.device.ordinal();
  Device& d = devices_[ordinal];
  d.current += static_cast<int64_t>(e.bytes);
  d.curve.push_back({static_cast<int64_t>(time), d.current});
  live_[e.data] = blocks_.size();
  blocks_.push_back({next_, static_cast<int64_t>(e.bytes), ordinal, time, kStays, scope, false});
  storages_[e.data] = {next_++, 0};
}

void MemoryOverTime::on_gone(const MemoryEvent& e, uint64_t time) {
  Device& d = devices_[e.device.ordinal()];
  d.current -= static_cast<int64_t>(e.bytes);
  d.curve.push_back({static_cast<int64_t>(time), d.current});
  if (const auto at = live_.find(e.data); at != live_.end()) {
    blocks_[at->second].gone = time;
    live_.erase(at);
  }
  storages_.erase(e.data);
}

Id MemoryOverTime::storage_of(StorageImpl* memory) {
  StorageImpl* const root = memory->root();
  const bool told = live_.count(root->data) != 0;  // of its end, too
  const bool large =
      (root->memory_of != root && root->external == 0) || root->external == StorageImpl::kOnGpu;
  const uint64_t serial = told || large ? 0 : root->serial();
  const auto at = storages_.find(root->data);
  if (at != storages_.end() && at->second.serial == serial) return at->second.storage;
  storages_[root->data] = {next_, serial};
  if (large && !told) {  // older than the recording
    live_[root->data] = blocks_.size();
    blocks_.push_back({next_, static_cast<int64_t>(root->bytes), static_cast<int>(root->device), 0,
                       kStays, "", true});
  }
  return next_++;
}

Id MemoryOverTime::made_at(const void* data) const {
  const auto at = live_.find(data);
  return at == live_.end() || blocks_[at->second].before ? -1 : blocks_[at->second].storage;
}

std::vector<MemoryRow> MemoryOverTime::rows(const std::map<int, Id>& device_of) const {
  std::vector<MemoryRow> out;
  for (const auto& [ordinal, d] : devices_) {
    const auto id = device_of.find(ordinal);
    if (id == device_of.end()) continue;
    MemoryRow row;
    row.device = id->second;
    row.curve = d.curve;
    const auto highest = std::max_element(d.curve.begin(), d.curve.end(),
                                          [](const auto& a, const auto& b) { return a[1] < b[1]; });
    row.peak = (*highest)[1];
    row.peak_time = static_cast<uint64_t>((*highest)[0]);
    for (const Block& b : blocks_) {
      if (b.device != ordinal) continue;
      if (b.made > row.peak_time || b.gone <= row.peak_time) continue;
      row.at_peak.push_back({b.storage, b.bytes,
                             b.scope.empty() ? "other" : "other, made in " + b.scope, -1, -1, -1});
    }
    // Of the memory from before the recording that no call of it used: what still exists.
    int64_t listed = 0;
    for (const BlockRow& b : row.at_peak) listed += b.bytes;
    if (row.peak > listed)
      row.at_peak.push_back({-1, row.peak - listed, "from before the recording", -1, -1, -1});
    std::stable_sort(row.at_peak.begin(), row.at_peak.end(),
                     [](const BlockRow& a, const BlockRow& b) { return a.bytes > b.bytes; });
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace see
}  // namespace ramet
