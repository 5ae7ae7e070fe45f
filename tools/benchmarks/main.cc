// ./tools/bench ops: this library's rows, and a peer's in the same run, interleaved A B A B with
// outputs compared first.
#include <dlfcn.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "kernels/config.h"
#include "tools/benchmarks/arms.h"

namespace {

double seconds(const BenchRow& row) {
  const auto start = std::chrono::steady_clock::now();
  row.run(row.inner);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
         static_cast<double>(row.inner);
}

struct Timing {
  std::vector<double> units;
  double at(double q) const {
    std::vector<double> v = units;
    std::sort(v.begin(), v.end());
    return v[static_cast<size_t>(q * static_cast<double>(v.size() - 1) + 0.5)];
  }
};

// Largest difference relative to the larger magnitude of the row; both arms computed the same thing
// from the same data.
double difference(const BenchRow& a, const BenchRow& b) {
  std::vector<double> x(4096), y(4096);
  a.setup(), a.run(1);
  const int n = a.outputs(x.data(), 4096);
  b.setup(), b.run(1);
  const int m = b.outputs(y.data(), 4096);
  if (n != m) return INFINITY;
  double worst = 0, scale = 1e-30;
  for (int i = 0; i < n; ++i) {
    worst = std::max(worst, std::fabs(x[static_cast<size_t>(i)] - y[static_cast<size_t>(i)]));
    scale = std::max(scale, std::fabs(y[static_cast<size_t>(i)]));
  }
  return worst / scale;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Benchmarks. Prints the median, the spread and, with a peer, the ratio of medians (above 1: "
      "faster than the peer)."};
  std::string what = "ops", peer_path, json_path, only;
  int threads = 1, rounds = 9;
  app.add_option("what", what, "ops")->capture_default_str();
  app.add_option("--peer", peer_path,
                 "shared object of a peer's arm (./tools/bench --torch PATH builds and passes it)");
  app.add_option("--json", json_path, "also write the figures into this file");
  app.add_option("--only", only, "rows whose name contains this");
  app.add_option("--threads", threads, "threads for operations")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_option("--rounds", rounds, "measurements per row")
      ->capture_default_str()
      ->check(CLI::Range(3, 1000));
  CLI11_PARSE(app, argc, argv);
  if (what != "ops") {
    std::fprintf(stderr, "bench: no such benchmark: got %s, expected ops\n", what.c_str());
    return 2;
  }
  const BenchArm own = open_ramet_arm(threads);
  BenchArm peer{nullptr, nullptr, 0};
  if (!peer_path.empty()) {
    void* so = dlopen(peer_path.c_str(), RTLD_NOW | RTLD_LOCAL);
    auto open = so ? reinterpret_cast<BenchArmOpen>(dlsym(so, "open_arm")) : nullptr;
    if (!open) {
      std::fprintf(stderr, "bench: cannot load %s: %s\n", peer_path.c_str(), dlerror());
      return 2;
    }
    peer = open(threads);
  }
  std::printf("%s\n%d thread(s), median of %d interleaved rounds\n", ramet::config().c_str(),
              threads, rounds);
  if (peer.rows) std::printf("peer: %s\n", peer.name);
  std::printf("%-30s %12s %19s %8s %12s %7s %9s\n", "row", "median", "10 % .. 90 %", "goal", "peer",
              "ratio", "max diff");
  nlohmann::json report = {{"config", ramet::config()},
                           {"threads", threads},
                           {"rounds", rounds},
                           {"peer", peer.rows ? peer.name : ""}};
  bool agree = true;
  for (int i = 0; i < own.count; ++i) {
    const BenchRow& a = own.rows[i];
    if (!only.empty() && std::string(a.name).find(only) == std::string::npos) continue;
    const BenchRow* b = peer.rows ? &peer.rows[i] : nullptr;
    const double apart = b ? difference(a, *b) : 0;
    a.setup();
    if (b) b->setup();
    seconds(a);
    if (b) seconds(*b);
    Timing mine, theirs;
    for (int r = 0; r < rounds; ++r) {
      mine.units.push_back(seconds(a) * a.per_second);
      if (!b) continue;
      // helpers of the other arm still spin
      if (threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(40));
      theirs.units.push_back(seconds(*b) * b->per_second);
      if (threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(40));
    }
    a.release();
    if (b) b->release();
    std::printf("%-30s %9.2f %-2s %8.2f .. %7.2f", a.name, mine.at(.5), a.unit, mine.at(.1),
                mine.at(.9));
    a.goal > 0 ? std::printf(" %8.4g", a.goal) : std::printf(" %8s", "");
    nlohmann::json row = {{"name", a.name},
                          {"unit", a.unit},
                          {"median", mine.at(.5)},
                          {"low", mine.at(.1)},
                          {"high", mine.at(.9)}};
    if (b) {
      agree = agree && apart < 1e-3;
      std::printf(" %9.2f %-2s %7.2f %9.1e%s", theirs.at(.5), b->unit, theirs.at(.5) / mine.at(.5),
                  apart, apart < 1e-3 ? "" : "  OUTPUTS DIFFER");
      row["peer_median"] = theirs.at(.5);
      row["ratio"] = theirs.at(.5) / mine.at(.5);
      row["difference"] = apart;
    }
    std::printf("\n");
    std::fflush(stdout);
    report["rows"].push_back(row);
  }
  if (!json_path.empty()) std::ofstream(json_path) << report.dump(2) << '\n';
  return agree ? 0 : 1;
}
