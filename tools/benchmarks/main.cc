// ./tools/bench ops and models: rows of this library and of other libraries in the same run. The
// libraries take turns, A B C A B C; their outputs are compared first.
#include <dlfcn.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kernels/config.h"
#include "tools/benchmarks/arms.h"

namespace {

// What is measured, and which value counts. A shared machine rarely leaves a model's step
// undisturbed, because steps take so long. So their best time counts, and the processor's time
// where one thread does all of the work.
struct Measure {
  const char* name;
  double quantile;
  bool processor_time;

  double now() const {
    if (processor_time) return double(std::clock()) / CLOCKS_PER_SEC;
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

double seconds(const BenchRow& row, const Measure& measure) {
  const double start = measure.now();
  row.run(row.inner);
  return (measure.now() - start) / static_cast<double>(row.inner);
}

struct Timing {
  std::vector<double> units;
  double at(double q) const {
    std::vector<double> v = units;
    std::sort(v.begin(), v.end());
    return v[static_cast<size_t>(q * static_cast<double>(v.size() - 1) + 0.5)];
  }
};

std::vector<double> outputs(const BenchRow& row) {
  std::vector<double> values(4096);
  row.setup(), row.run(1);
  values.resize(static_cast<size_t>(row.outputs(values.data(), 4096)));
  row.release();
  return values;
}

// The largest difference, relative to the largest magnitude of the row. Both arms computed the same
// from the same data. Infinite where one has a NaN, or an infinity that the other does not have.
constexpr double difference(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0, scale = 1e-30;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] && (a[i] == INFINITY || a[i] == -INFINITY)) continue;
    const double apart = std::max(a[i] - b[i], b[i] - a[i]);
    if (!(apart < INFINITY)) return INFINITY;
    worst = std::max(worst, apart);
    scale = std::max({scale, b[i], -b[i]});
  }
  return worst / scale;
}
template <size_t n> consteval double apart(const double (&a)[n], const double (&b)[n]) {
  return difference(a, b);
}
static_assert(apart({1, -4}, {1, -2}) == 1 && apart({INFINITY, 1}, {INFINITY, 2}) == 0.5);
static_assert(apart({NAN}, {1}) == INFINITY && apart({1}, {NAN}) == INFINITY);
static_assert(apart({1}, {INFINITY}) == INFINITY && apart({INFINITY}, {-INFINITY}) == INFINITY);

const BenchRow* row_named(const BenchArm& arm, const std::string& name) {
  for (int i = 0; i < arm.count; ++i)
    if (name == arm.rows[i].name) return arm.rows + i;
  return nullptr;
}

struct Entrant {
  std::string arm;
  const BenchRow* row;
  double apart;  // from this library's outputs
  Timing timing;
};

class Driver {
 public:
  Driver(int threads_, int rounds_, Measure measure_)
      : threads(threads_), rounds(rounds_), measure(measure_) {}

  nlohmann::json report;
  bool agree = true;

  void row(const BenchRow& own, const std::vector<BenchArm>& peers) {
    std::vector<Entrant> entrants{{"Ramet", &own, 0, {}}};
    const std::vector<double> ours = outputs(own);
    for (const BenchArm& peer : peers)
      if (const BenchRow* r = row_named(peer, own.name))
        entrants.push_back({peer.name, r, difference(ours, outputs(*r)), {}});
    take_turns(entrants);
    print(entrants);
  }

  // Prints this library's rows in relation to those of each peer.
  void summary() {
    for (auto& [peer, of] : ratios) {
      std::sort(of.begin(), of.end());
      const size_t n = of.size();
      const double median = (of[(n - 1) / 2].first + of[n / 2].first) / 2;
      std::printf("%s: median ratio %.2f of %zu row(s), lowest %.2f (%s)\n", peer.c_str(), median,
                  n, of[0].first, of[0].second.c_str());
      report["ratios"][peer] = {{"median", median}, {"lowest", of[0].first}};
    }
  }

 private:
  void take_turns(std::vector<Entrant>& entrants) {
    for (int r = -1; r < rounds; ++r) {  // the first round warms up
      for (Entrant& e : entrants) {
        // Arms of this library share their data, so it is made anew for each.
        e.row->setup();
        const long warm = std::max(1L, e.row->inner / 4);
        e.row->run(warm);
        const double t = seconds(*e.row, measure);
        if (r >= 0) e.timing.units.push_back(t * e.row->per_second);
        e.row->release();
        // Worker threads of the other arm still spin.
        if (threads > 1 && entrants.size() > 1)
          std::this_thread::sleep_for(std::chrono::milliseconds(40));
      }
    }
  }

  void print(const std::vector<Entrant>& entrants) {
    const Entrant& own = entrants.front();
    const BenchRow& row = *own.row;
    std::printf("%-30s %9.2f %-2s %9.2f .. %8.2f", row.name, typical(own), row.unit,
                own.timing.at(.1), own.timing.at(.9));
    row.goal > 0 ? std::printf(" %6.4g", row.goal) : std::printf(" %6s", "");
    nlohmann::json line = figures(own);
    line["name"] = row.name, line["unit"] = row.unit;
    for (size_t i = 1; i < entrants.size(); ++i) {
      const Entrant& e = entrants[i];
      const bool gain = e.arm == "captured";  // this library itself
      const double ratio = gain ? typical(own) / typical(e) : typical(e) / typical(own);
      agree = agree && e.apart < row.apart;
      std::printf("  | %s %.2f, %s %.2f", e.arm.c_str(), typical(e), gain ? "gain" : "ratio",
                  ratio);
      if (!gain) ratios[e.arm].push_back({ratio, row.name});
      if (!(e.apart < row.apart)) std::printf(", OUTPUTS DIFFER by %.1e", e.apart);
      nlohmann::json peer = figures(e);
      peer["name"] = e.arm, peer["difference"] = e.apart, peer[gain ? "gain" : "ratio"] = ratio;
      line["peers"].push_back(peer);
    }
    std::printf("\n");
    std::fflush(stdout);
    report["rows"].push_back(line);
  }

  double typical(const Entrant& e) const { return e.timing.at(measure.quantile); }
  static nlohmann::json figures(const Entrant& e) {
    return {{"median", e.timing.at(.5)},
            {"best", e.timing.at(0)},
            {"low", e.timing.at(.1)},
            {"high", e.timing.at(.9)}};
  }

  int threads, rounds;
  Measure measure;
  std::map<std::string, std::vector<std::pair<double, std::string>>> ratios;  // of each peer
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Benchmarks. Prints for each row the median (of models the best time), the spread, the goal "
      "and, with peers, theirs and the ratio (above 1: faster than the peer)."};
  std::string what = "ops", json_path, only;
  std::vector<std::string> peer_paths;
  int threads = 1, rounds = 9;
  app.add_option("what", what, "ops or models")->capture_default_str();
  app.add_option("--peer", peer_paths,
                 "shared object of a peer's arm (./tools/bench builds and passes it)")
      ->group("");
  app.add_option("--json", json_path, "also write the figures into this file");
  app.add_option("--only", only, "rows whose name contains this");
  app.add_option("--threads", threads, "threads for operations")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_option("--rounds", rounds, "measurements per row")
      ->capture_default_str()
      ->check(CLI::Range(3, 1000));
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) { return app.exit(e); } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "bench: %s (--help lists the options)\n", e.what());
    return 2;
  }
  const bool models = what == "models";
  if (!models && what != "ops") {
    std::fprintf(stderr, "bench: no such benchmark: got %s, expected ops or models\n",
                 what.c_str());
    return 2;
  }
  std::vector<BenchArm> own{models ? open_models_arm(threads) : open_ramet_arm(threads)};
  if (!models) own.push_back(open_parallel_arm(threads));
  std::vector<const BenchRow*> rows;
  for (const BenchArm& arm : own)
    for (int i = 0; i < arm.count; ++i)
      if (std::string(arm.rows[i].name).find(only) != std::string::npos)
        rows.push_back(arm.rows + i);
  if (rows.empty()) {
    std::fprintf(stderr, "bench: --only: got \"%s\", expected a part of a row's name\n",
                 only.c_str());
    return 2;
  }
  std::vector<BenchArm> peers{models ? open_captured_arm(threads) : open_plain_arm(threads)};
  for (const std::string& path : peer_paths) {
    void* so = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    auto open =
        so ? reinterpret_cast<BenchArmOpen>(dlsym(so, models ? "open_models_arm" : "open_arm"))
           : nullptr;
    if (!open) {
      std::fprintf(stderr, "bench: cannot load %s: %s\n", path.c_str(), dlerror());
      return 2;
    }
    peers.push_back(open(threads));
  }
  const Measure measure = !models        ? Measure{"median", .5, false}
                          : threads == 1 ? Measure{"best processor time", 0, true}
                                         : Measure{"best time", 0, false};
  std::printf("%s\n%d thread(s), %s of %d interleaved rounds\n", ramet::config().c_str(), threads,
              measure.name, rounds);
  std::printf("%-30s %12s %21s %6s\n", "row", models ? "best" : "median", "10 % .. 90 %", "goal");
  Driver driver(threads, rounds, measure);
  driver.report = {{"config", ramet::config()}, {"threads", threads}, {"rounds", rounds}};
  for (const BenchRow* row : rows) driver.row(*row, peers);
  driver.summary();
  if (!json_path.empty()) {
    std::ofstream out(json_path);
    out << driver.report.dump(2) << std::endl;
    if (!out) {
      std::fprintf(stderr, "bench: --json: cannot write \"%s\"\n", json_path.c_str());
      return 1;
    }
  }
  if (!driver.agree) std::fprintf(stderr, "bench: outputs differ from a peer's\n");
  return driver.agree ? 0 : 1;
}
