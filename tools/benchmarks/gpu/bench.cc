// The GPU benchmark. Started by a user, it prints a table. ./tools/gpu_check starts it with --serve
// and drives it line by line, so that its rows and PyTorch's take turns.
//
//   gpu_bench [--tiny] [--batch N] [--only TEXT] [--rounds N] [--seconds N]
//     no row is begun after so many seconds; the exit code is 3 where one was not
//     a step of GPT-2 has so many sequences, by default 64
//   gpu_bench [--tiny] [--batch N] --serve
//     a line in, a line of JSON out: rows, make I, sample N, outputs, drop
//   gpu_bench --cold
//     one training step from the start of the process, and its memory
//   gpu_bench --bare
//     a context and nothing else
//   gpu_bench --probe
//     a context and a kernel: do the GPU and its driver run what was built? Prints how many GPUs
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "kernels/config.h"
#include "runtime/base/device.h"
#include "runtime/cuda/check.h"
#include "runtime/devices/gpu.h"
#include "runtime/memory/allocator.h"
#include "tools/benchmarks/gpu/rows.h"

namespace ramet::gpu_bench {
namespace {

using nlohmann::json;

// The number of repetitions that take about 20 ms, as the rules want; tiny rows take less.
int64_t repetitions(const Row& row, const Work& work, bool tiny) {
  work.run();
  const double once = std::max(seconds_of(row, work, 1), 1e-7);
  return std::clamp(static_cast<int64_t>((tiny ? 1e-4 : 2e-2) / once), int64_t{1},
                    int64_t{tiny ? 4 : 20000});
}

const char* name_of(Limit limit) {
  switch (limit) {
    case Limit::Copy: return "copy";
    case Limit::Product: return "product";
    case Limit::Launch: return "launch";
    case Limit::Tokens: return "tokens";
    case Limit::None: break;
  }
  return "";
}

json description(const Row& r) {
  return {{"name", r.name},
          {"anchor", r.anchor},
          {"shape", r.shape},
          {"limit", name_of(r.limit)},
          {"work", r.work},
          {"goal", r.goal},
          {"goal_ratio", r.goal_ratio},
          {"tolerance", r.tolerance},
          {"host", r.host},
          {"memory", r.memory}};
}

json memory() {
  size_t available = 0, total = 0;
  RAMET_CUDA("gpu_bench", 0, cudaMemGetInfo(&available, &total));
  return {{"used", total - available}, {"total", total}};
}

// ---- line by line

class Server {
 public:
  Server(bool tiny_, int64_t batch) : tiny(tiny_), all(rows(tiny_, batch)) {}

  void run() {
    std::string line;
    while (std::getline(std::cin, line) && line != "quit") {
      json answer;
      try {
        answer = {{"ok", answer_to(line)}};
      } catch (const std::exception& e) { answer = {{"error", e.what()}}; }
      std::cout << answer.dump() << std::endl;
    }
  }

 private:
  json answer_to(const std::string& line) {
    std::istringstream in(line);
    std::string what;
    int64_t n = 0;
    in >> what >> n;
    if (what == "rows") {
      json list = json::array();
      for (const Row& r : all) list.push_back(description(r));
      return list;
    }
    if (what == "machine") return {{"config", config()}, {"devices", cuda::device_count()}};
    if (what == "make") {
      drop();
      RAMET_CHECK(n >= 0 && n < static_cast<int64_t>(all.size()), "gpu_bench", "no row ", n);
      row = &all[static_cast<size_t>(n)];
      work = row->make();
      return true;
    }
    if (what == "drop") {
      drop();
      return true;
    }
    RAMET_CHECK(work.has_value(), "gpu_bench", "'", what, "' before any make");
    if (what == "outputs") return work->outputs();
    if (what == "repetitions") return repetitions(*row, *work, tiny);
    RAMET_CHECK(what == "sample" && n > 0, "gpu_bench", "not understood: ", line);
    return seconds_of(*row, *work, n);
  }

  void drop() {
    work.reset(), row = nullptr;
    cuda::synchronize(0);
    empty_cache();
  }

  bool tiny;
  std::vector<Row> all;
  const Row* row = nullptr;
  std::optional<Work> work;
};

// ---- alone

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

std::string in_words(const Row& row, double seconds) {
  char text[64];
  if (row.memory) std::snprintf(text, sizeof text, "%.4g KB/token", seconds / row.work * 1e-3);
  else if (row.limit == Limit::Tokens)
    std::snprintf(text, sizeof text, "%.4g k tokens/s", row.work / seconds * 1e-3);
  else if (row.limit == Limit::Copy)
    std::snprintf(text, sizeof text, "%.4g GB/s", row.work / seconds * 1e-9);
  else if (row.limit == Limit::Product)
    std::snprintf(text, sizeof text, "%.4g TFLOP/s", row.work / seconds * 1e-12);
  else return "";
  return text;
}

int table(bool tiny, int64_t batch, const std::string& only, int rounds, int seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::printf("| row | anchor | time | rate | of the limit | goal |\n|---|---|---|---|---|---|\n");
  std::map<Limit, double> limits;
  int failed = 0;
  std::string left_out;
  for (const Row& row : rows(tiny, batch)) {
    const bool limit = row.anchor == "limit";
    if (!limit && row.name.find(only) == std::string::npos) continue;
    if (std::chrono::steady_clock::now() > end) {
      left_out += "- not measured: " + row.name + ": no time was left\n";
      continue;
    }
    try {
      const Work work = row.make();
      const int64_t times = repetitions(row, work, tiny);
      std::vector<double> samples;
      for (int i = 0; i < rounds; ++i) samples.push_back(seconds_of(row, work, times));
      const double t = median(samples);
      if (limit) limits[row.limit] = row.work > 0 ? row.work / t : t;
      std::string share;
      char text[64];
      if (row.limit == Limit::Launch && !limit) {
        std::snprintf(text, sizeof text, "launch + %.0f ns", (t - limits[Limit::Launch]) * 1e9);
        share = text;
      } else if (!limit && limits.count(row.limit)) {
        std::snprintf(text, sizeof text, "%.0f %%", 100 * row.work / t / limits[row.limit]);
        share = text;
      }
      std::printf("| %s | %s | %.4g %s | %s | %s | %.4g |\n", row.name.c_str(), row.anchor.c_str(),
                  row.memory ? t / 1e6 : t * 1e6, row.memory ? "MB" : "us",
                  in_words(row, t).c_str(), share.c_str(), row.goal);
    } catch (const std::exception& e) {
      std::printf("| %s | %s | FAILED: %s |\n", row.name.c_str(), row.anchor.c_str(), e.what());
      ++failed;
    }
    std::fflush(stdout);
    cuda::synchronize(0);
    empty_cache();
  }
  std::printf("\n%s", left_out.c_str());
  return failed ? 1 : left_out.empty() ? 0 : 3;
}

// What a process pays until its first training step is done. The caller measures the time.
int cold(bool tiny, bool bare) {
  if (bare) RAMET_CUDA("gpu_bench", 0, cudaFree(nullptr));
  else
    for (const Row& row : rows(tiny, 1))
      if (row.name == "mnist.step") {
        row.make().run();
        cuda::synchronize(0);
      }
  json line = memory();
  line["tensors"] = bare ? 0 : memory_stats(kGpu).current + memory_stats(kGpu).cached;
  std::cout << line.dump() << std::endl;
  return 0;
}

int probe() {
  bare_launch();
  cuda::synchronize(0);
  std::printf("a kernel has run\ncards: %d\n", cuda::device_count());
  return 0;
}

int wrong(const std::string& what) {
  std::fprintf(stderr, "gpu_bench: %s\n", what.c_str());
  return 2;
}

int run(int argc, char** argv) {
  bool tiny = false, serve = false;
  int rounds = 9, seconds = 1000000, batch = 64;
  std::string only, how;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--tiny") tiny = true;
    else if (word == "--serve") serve = true;
    else if (word == "--cold" || word == "--bare" || word == "--probe") how = word;
    else if (word == "--only" && i + 1 < argc) only = argv[++i];
    else if (word == "--rounds" && i + 1 < argc) rounds = std::atoi(argv[++i]);
    else if (word == "--batch" && i + 1 < argc) batch = std::atoi(argv[++i]);
    else if (word == "--seconds" && i + 1 < argc) seconds = std::atoi(argv[++i]);
    else return wrong("not understood: " + word);
  }
  if (rounds < 1 || rounds > 1000) return wrong("--rounds: expected 1 to 1000");
  if (batch < 1 || batch > 4096) return wrong("--batch: expected 1 to 4096");
  if (!cuda::is_available()) {
    std::fprintf(stderr, "gpu_bench: no GPU to measure: %s\n", gpu::library()->why_none().c_str());
    return 1;
  }
  manual_seed(1);
  if (serve) {
    Server(tiny, batch).run();
    return 0;
  }
  if (how == "--probe") return probe();
  if (!how.empty()) return cold(tiny, how == "--bare");
  return table(tiny, batch, only, rounds, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gpu_bench: %s\n", e.what());
    return 1;
  }
}

}  // namespace ramet::gpu_bench
