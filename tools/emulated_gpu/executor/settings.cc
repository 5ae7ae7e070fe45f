#include "tools/emulated_gpu/executor/settings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "runtime/base/error.h"

namespace ramet::emulated {
namespace {

constexpr const char* kOp = "emulated CUDA";

/// One variable of the environment, and the text of errors about it.
struct Variable {
  std::string name, value;

  explicit Variable(const char* suffix) : name(std::string("RAMET_EMULATED_") + suffix) {
    if (const char* text = std::getenv(name.c_str())) value = text;
  }
  explicit operator bool() const { return !value.empty(); }

  [[noreturn]] void refuse(const char* expected) const {
    fail(kOp, name, " is not understood: got \"", value, "\", expected ", expected);
  }

  long integer(long low, long high, const char* expected) const {
    char* end = nullptr;
    const long number = std::strtol(value.c_str(), &end, 10);
    if (*end != '\0' || number < low || number > high) refuse(expected);
    return number;
  }

  std::vector<std::string> parts() const {
    std::vector<std::string> list(1);
    for (const char c : value) {
      if (c == ',') list.emplace_back();
      else list.back() += c;
    }
    return list;
  }

  /// The number after "random:", or 1 where nothing follows "random".
  bool is_random(uint64_t* seed) const {
    if (value.rfind("random", 0) != 0) return false;
    if (value.size() == 6) return true;
    char* end = nullptr;
    const char* digits = value.c_str() + 7;
    *seed = std::strtoull(digits, &end, 10);
    return value[6] == ':' && *digits >= '0' && *digits <= '9' && *end == '\0';
  }
};

size_t parse_bytes(const Variable& variable, const std::string& text, const char* expected) {
  char* end = nullptr;
  double number = ramet::detail::read_double(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(number) || number < 0) variable.refuse(expected);
  switch (*end) {
    case 'K': number *= double(1 << 10), ++end; break;
    case 'M': number *= double(1 << 20), ++end; break;
    case 'G': number *= double(1 << 30), ++end; break;
  }
  // Twice the capacity is reserved as addresses; 16 TiB is more than any machine's.
  if (*end != '\0' || number > double(size_t(1) << 44)) variable.refuse(expected);
  return static_cast<size_t>(number);
}

double parse_speed(const Variable& variable) {
  char* end = nullptr;
  const double number = ramet::detail::read_double(variable.value.c_str(), &end);
  if (*end != '\0' || !std::isfinite(number) || number < 0)
    variable.refuse("a number of at least 0, in 10^9 bytes a second");
  return number;
}

/// "0-1,2-3".
std::vector<std::pair<int, int>> parse_pairs(const Variable& variable, const char* expected) {
  std::vector<std::pair<int, int>> pairs;
  for (const std::string& part : variable.parts()) {
    char *dash = nullptr, *end = nullptr;
    const long a = std::strtol(part.c_str(), &dash, 10);
    if (dash == part.c_str() || *dash != '-') variable.refuse(expected);
    const long b = std::strtol(dash + 1, &end, 10);
    if (end == dash + 1 || *end != '\0' || a < 0 || b < 0 || a > 63 || b > 63)
      variable.refuse(expected);
    pairs.emplace_back(int(a), int(b));
  }
  return pairs;
}

bool contains(const std::vector<std::pair<int, int>>& pairs, int a, int b) {
  return std::any_of(pairs.begin(), pairs.end(), [&](const std::pair<int, int>& pair) {
    return pair == std::pair(a, b) || pair == std::pair(b, a);
  });
}

/// Only a test's restart() writes it, while nothing runs.
Settings& current() {
  static Settings value = settings_from_environment();
  return value;
}

}  // namespace

size_t Settings::memory_of(int index) const {
  if (memory.empty()) return 0;
  return memory[std::min(static_cast<size_t>(index), memory.size() - 1)];
}

bool Settings::can_access_peer(int from, int to) const {
  return from != to && (all_peers || contains(peers, from, to));
}

bool Settings::peer_is_broken(int from, int to) const { return contains(broken_peers, from, to); }
bool Settings::peer_is_lost(int from, int to) const { return contains(lost_peers, from, to); }

Settings settings_from_environment() {
  Settings s;
  if (const Variable v("DEVICES"); v) s.devices = int(v.integer(0, 64, "0 to 64"));
  if (const Variable v("MEMORY"); v) {
    s.memory.clear();
    for (const std::string& part : v.parts())
      s.memory.push_back(parse_bytes(v, part, "bytes for each device, such as 64M or 1G,256M"));
  }
  if (const Variable v("DRIVER_MEMORY"); v)
    s.driver_memory = parse_bytes(v, v.value, "bytes, such as 64M");
  if (const Variable v("DRIVER"); v)
    s.driver_version = int(v.integer(0, 99999, "a version such as 13000, or 0"));
  if (const Variable v("DRIVER_WAITS"); v) s.driver_waits = v.integer(0, 1, "0 or 1") != 0;
  if (const Variable v("FREE_IN_CAPTURE"); v) s.free_in_capture = v.integer(0, 1, "0 or 1") != 0;
  if (const Variable v("SMS"); v) s.multiprocessors = int(v.integer(1, 1024, "1 to 1024"));
  if (const Variable v("PEER"); v) {
    s.all_peers = v.value == "all";
    if (v.value != "all" && v.value != "none")
      s.peers = parse_pairs(v, "all, none or pairs such as 0-1,2-3");
  }
  if (const Variable v("BROKEN_PEER"); v) s.broken_peers = parse_pairs(v, "pairs such as 0-1,2-3");
  if (const Variable v("POOLS"); v) s.memory_pools = v.integer(0, 1, "0 or 1") != 0;
  if (const Variable v("LOST_PEER"); v) s.lost_peers = parse_pairs(v, "pairs such as 0-1,2-3");
  if (const Variable v("HOST_GBPS"); v) s.host_gbps = parse_speed(v);
  if (const Variable v("PEER_GBPS"); v) s.peer_gbps = parse_speed(v);
  if (const Variable v("THREADS"); v) {
    if (v.value == "forward") s.threads = ThreadOrder::Forward;
    else if (v.value == "reverse") s.threads = ThreadOrder::Reverse;
    else if (v.is_random(&s.thread_seed)) s.threads = ThreadOrder::Random;
    else v.refuse("forward, reverse or random:SEED");
  }
  if (const Variable v("STREAMS"); v) {
    if (v.value == "async") s.streams = StreamMode::Async;
    else if (v.value == "eager") s.streams = StreamMode::Eager;
    else if (v.value == "lazy") s.streams = StreamMode::Lazy;
    else if (v.is_random(&s.stream_seed)) s.streams = StreamMode::Random;
    else v.refuse("async, eager, lazy or random:SEED");
  }
  if (const Variable v("WORKERS"); v) s.workers = int(v.integer(0, 256, "0 to 256"));
  if (const Variable v("NCCL"); v)
    s.nccl_version = int(v.integer(0, 99999, "a version such as 22800, or 0"));
  if (const Variable v("CUBLASLT"); v)
    s.cublaslt_version = int(v.integer(0, 999999, "a version such as 130000, or 0"));
  if (const Variable v("STACK_KB"); v) s.stack_kb = int(v.integer(16, 65536, "16 to 65536"));
  if (const Variable v("TIMEOUT_MS"); v)
    s.timeout_ms = int(v.integer(1, std::numeric_limits<int>::max(), "at least 1"));
  if (const Variable v("BLAS_ALGORITHMS"); v) s.blas_algorithms = v.integer(0, 2, "0, 1 or 2");
  if (const Variable v("HOST_GUARD"); v) s.guard_host = v.integer(0, 1, "0 or 1") != 0;
  if (const Variable v("REPORTS"); v) s.print_reports = v.integer(0, 1, "0 or 1") != 0;
  if (const Variable v("ABORT"); v) s.abort_on_fault = v.integer(0, 1, "0 or 1") != 0;
  return s;
}

const Settings& settings() { return current(); }
void replace_settings(const Settings& next) { current() = next; }

}  // namespace ramet::emulated
