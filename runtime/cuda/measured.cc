#include "runtime/cuda/measured.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include "runtime/base/atomic_file.h"
#include "runtime/base/logging.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"

namespace ramet {
namespace cuda {
namespace {

constexpr const char* kOp = "set_measurements";
constexpr const char* kFirstLine = "ramet measurements 1";
constexpr int kRepeats = 3;

struct Times {
  double first, second;  // microseconds
  bool second_is_quicker() const { return second < first; }
};
using Table = std::map<std::string, Times>;

struct Measurements {
  std::mutex mutex;
  std::string path;
  Table table;
  uint64_t made = 0;
};
Measurements& measurements() {
  static auto* const all = new Measurements;  // a worker may ask when the program ends
  return *all;
}
std::atomic<bool> on{false};

// Reads what write() writes after the name: a tab and a number, twice.
std::optional<Times> times_of(const std::string& text) {
  double numbers[2];
  const char* at = text.c_str();
  for (double& number : numbers) {
    char* end = nullptr;
    if (*at != '\t') return std::nullopt;
    number = ramet::detail::read_double(at + 1, &end);
    if (end == at + 1 || !(number > 0)) return std::nullopt;
    at = end;
  }
  if (at != text.c_str() + text.size()) return std::nullopt;
  return Times{numbers[0], numbers[1]};
}

// The entries of a file; empty if it does not exist.
Table read(const std::string& path) {
  Table table;
  if (::access(path.c_str(), F_OK) != 0) return table;
  auto in = ramet::detail::classic<std::ifstream>(path);
  RAMET_CHECK(in, kOp, path, ": cannot be read");
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (number == 1 && line == kFirstLine) continue;
    const size_t tab = line.find('\t');
    const std::optional<Times> t =
        tab != std::string::npos ? times_of(line.substr(tab)) : std::nullopt;
    RAMET_CHECK(number > 1 && tab > 0 && t, kOp, path, ", line ", number, ": got '",
                line.substr(0, 80), "', expected ",
                number == 1 ? std::string("'") + kFirstLine + "'"
                            : std::string("what was measured and two times, with tabs between"));
    table[line.substr(0, tab)] = *t;
  }
  return table;
}

void write(const std::string& path, const Table& table) {
  std::string text = std::string(kFirstLine) + '\n';
  for (const auto& [what, t] : table)
    text += what + ramet::detail::formatted("\t%.3f\t%.3f\n", t.first, t.second);
  write_file_atomically(path, text);
}

// Asked once: a driver may take a millisecond for it.
std::string name_of_card(const Measured& what, int card) {
  static auto* const mutex = new std::mutex;
  static auto* const names = new std::map<int, std::string>;
  const std::lock_guard lock(*mutex);
  std::string& name = (*names)[card];
  if (name.empty()) {
    cudaDeviceProp properties;
    RAMET_CUDA(what.op, what.device, cudaGetDeviceProperties(&properties, card));
    name = properties.name;
  }
  return name;
}

std::string text_of(const Measured& what, const DeviceState& state) {
  std::string text =
      name_of_card(what, state.card) + ": " + what.op + ' ' + short_name_of(what.dtype);
  for (int i = 0; i < what.numbers; ++i) text += ' ' + std::to_string(what.shape[i]);
  std::ranges::replace(text, '\t', ' ');
  return text;
}

// The best of a few times, the two in turn, after one run of each that does not count.
Times measure(const Measured& what, DeviceState& state, Way first, Way second) {
  const CardGuard card(what.op, state);
  const cudaStream_t stream = state.stream(Queue::kCompute, what.op);
  constexpr double kMost = std::numeric_limits<double>::max();
  Times best{kMost, kMost};
  for (int i = 0; i <= kRepeats; ++i)
    for (const auto& [way, time] :
         {std::pair(first, &best.first), std::pair(second, &best.second)}) {
      RAMET_CUDA(what.op, what.device, cudaStreamSynchronize(stream));
      const auto begin = std::chrono::steady_clock::now();
      way.queue(way.with);
      RAMET_CUDA(what.op, what.device, cudaStreamSynchronize(stream));
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      if (i > 0) *time = std::min(*time, std::max(took.count(), 0.001));
    }
  return best;
}

// Nothing runs during a capture, and a wait would end it.
bool makes_graph(const Measured& what, DeviceState& state) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  RAMET_CUDA(what.op, what.device,
             cudaStreamIsCapturing(state.stream(Queue::kCompute, what.op), &status));
  return status != cudaStreamCaptureStatusNone;
}

void take(const std::string& path) {
  Measurements& m = measurements();
  const std::lock_guard lock(m.mutex);
  Table table = path.empty() ? Table() : read(path);
  if (!path.empty()) write(path, table);  // checks that it can be written
  m.path = path;
  m.table = std::move(table);
  on = !path.empty();
}

// Once, at the first call; set_measurements() has priority. Not by std::call_once: Note [Own
// thread-local memory] in runtime/observe/thread_local_state.cc.
void read_environment(bool program_has_said) {
  [[maybe_unused]] static const bool read = [&] {
    const char* path = program_has_said ? nullptr : std::getenv("RAMET_CUDA_MEASUREMENTS");
    if (path && *path) take(path);
    return true;
  }();
}

}  // namespace

void set_measurements(const std::string& path) {
  take(path);
  read_environment(true);
}
bool has_measurements() {
  read_environment(false);
  return on.load(std::memory_order_relaxed);
}
uint64_t measurements_made() {
  Measurements& m = measurements();
  const std::lock_guard lock(m.mutex);
  return m.made;
}

bool second_is_quicker(const Measured& what, bool estimate, Way first, Way second) {
  if (!has_measurements()) return estimate;
  DeviceState& state = device_state(what.device, what.op);
  const std::string text = text_of(what, state);
  Measurements& m = measurements();
  std::unique_lock lock(m.mutex);
  if (const auto at = m.table.find(text); at != m.table.end())
    return at->second.second_is_quicker();
  if (m.path.empty()) return estimate;
  // The stream may wait for another rank, a thread that wants to measure, too, and has not begun.
  lock.unlock();
  if (makes_graph(what, state)) return estimate;
  const Times times = measure(what, state, first, second);
  lock.lock();
  if (m.path.empty()) return estimate;
  ++m.made;
  // An entry that another thread or process has made first stays. An error of the file is no reason
  // to stop, or to measure again.
  m.table.try_emplace(text, times);
  try {
    Table now = read(m.path);
    for (const auto& theirs : now) m.table.insert_or_assign(theirs.first, theirs.second);
    write(m.path, m.table);
  } catch (const Error& e) { log(LogLevel::Warning, "a measurement is not kept: ", e.what()); }
  return m.table.at(text).second_is_quicker();
}

}  // namespace cuda
}  // namespace ramet
