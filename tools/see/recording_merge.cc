// Several ranks' recordings as one, and how long lists are.
#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/base/error.h"
#include "tools/see/recording_fields.h"
#include "tools/see/recording_file.h"

namespace ramet {
namespace see {

std::array<int64_t, kLists> sizes_of(const RecordingData& d) {
  const auto n = [](const auto& list) { return static_cast<int64_t>(list.size()); };
  constexpr int64_t any = std::numeric_limits<int64_t>::max();
  return {n(d.devices),
          n(d.sources),
          n(d.modules),
          n(d.tensors),
          n(d.statistics),
          n(d.operations),
          n(d.nodes),
          n(d.buckets),
          n(d.parameters),
          any,
          any};
}

namespace {

class Mover {
 public:
  explicit Mover(const std::array<int64_t, kLists>& by) : by_(by) {}
  template <class T> void operator()(const char*, T&) {}
  template <class T> void id(const char*, T& value, List list) {
    if constexpr (std::is_arithmetic_v<T>) {
      const int64_t moved = static_cast<int64_t>(value) + by_[static_cast<size_t>(list)];
      if (std::is_unsigned_v<T> || value >= 0) {
        RAMET_CHECK(std::in_range<T>(moved), "see", "rows of all ranks: got ", moved,
                    ", expected at most ", std::numeric_limits<T>::max());
        value = static_cast<T>(moved);
      }
    } else {
      for (Id& one : value) id("", one, list);
    }
  }
  template <class Row> void rows(const char*, std::vector<Row>& list) {
    for (Row& row : list) fields(*this, row);
  }

 private:
  const std::array<int64_t, kLists>& by_;
};

// The largest numbers that are no indices.
class Largest {
 public:
  int64_t storage = -1, thread = -1;
  template <class T> void operator()(const char*, const T&) {}
  template <class T> void id(const char*, const T& value, List list) {
    if constexpr (std::is_arithmetic_v<T>) {
      if (list == List::storages) storage = std::max(storage, static_cast<int64_t>(value));
      if (list == List::threads) thread = std::max(thread, static_cast<int64_t>(value));
    }
  }
  template <class Row> void rows(const char*, const std::vector<Row>& list) {
    for (const Row& row : list) fields(*this, row);
  }
};

void delay(RecordingData& d, uint64_t by) {
  for (OperationRow& r : d.operations) r.start += by, r.end += by;
  for (KernelRow& r : d.kernels) r.start += by, r.end += by;
  for (MovementRow& r : d.movements) r.start += by, r.end += by;
  for (EventRow& r : d.events) r.time += by;
  for (MemoryRow& r : d.memory) {
    r.peak_time += by;
    for (auto& point : r.curve) point[0] += static_cast<int64_t>(by);
  }
  d.duration += by;
}

template <class Row> void append(std::vector<Row>& to, std::vector<Row>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

RecordingData merge(const std::vector<RecordingData>& ranks) {
  RAMET_CHECK(!ranks.empty(), "see", "merge: got no recordings, expected one a rank");
  int64_t began = ranks[0].began;
  for (size_t r = 0; r < ranks.size(); ++r) {
    RAMET_CHECK(ranks[r].ranks == 1, "see", "merge: recording ", r, " is of ", ranks[r].ranks,
                " ranks, expected one of 1");
    began = std::min(began, ranks[r].began);
  }
  const auto later = [began](const RecordingData& d) {
    return (static_cast<uint64_t>(d.began) - static_cast<uint64_t>(began)) * 1000;
  };
  RecordingData all = ranks[0];
  delay(all, later(all));
  all.began = began;
  for (DeviceRow& d : all.devices) d.rank = 0;
  for (size_t r = 1; r < ranks.size(); ++r) {
    RecordingData more = ranks[r];
    std::array<int64_t, kLists> by = sizes_of(all);
    Largest largest;
    lists(largest, std::as_const(all));
    by[static_cast<size_t>(List::storages)] = largest.storage + 1;
    by[static_cast<size_t>(List::threads)] = largest.thread + 1;
    delay(more, later(more));
    Mover mover(by);
    lists(mover, more);
    for (DeviceRow& d : more.devices) d.rank = static_cast<int>(r);
    append(all.devices, more.devices), append(all.sources, more.sources);
    append(all.modules, more.modules), append(all.tensors, more.tensors);
    append(all.statistics, more.statistics), append(all.operations, more.operations);
    append(all.nodes, more.nodes), append(all.kernels, more.kernels);
    append(all.movements, more.movements), append(all.buckets, more.buckets);
    append(all.events, more.events), append(all.parameters, more.parameters);
    append(all.memory, more.memory), append(all.findings, more.findings);
    for (const std::string& note : more.notes)
      if (std::find(all.notes.begin(), all.notes.end(), note) == all.notes.end())
        all.notes.push_back(note);
    all.duration = std::max(all.duration, more.duration);
  }
  std::stable_sort(all.events.begin(), all.events.end(),
                   [](const EventRow& a, const EventRow& b) { return a.time < b.time; });
  all.ranks = static_cast<int>(ranks.size());
  if (all.ranks > 1)
    all.notes.emplace_back(
        "Times of different ranks are compared by the clocks of their machines: between machines "
        "they are as right as those clocks.");
  return all;
}

}  // namespace see
}  // namespace ramet
