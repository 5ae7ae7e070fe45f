// By numbers, by the checker, and by counting what each warp's accesses make the memory move.
#include <set>

#include "tools/labs/08_coalesced/lab.h"
#include "tools/labs/gpu.h"

namespace ramet::labs {
namespace {

constexpr unsigned kRoom = 8, kThreads = 1024, kWarp = 32, kSector = 32;

/// Memory of a Trace for this many blocks.
class TraceMemory {
 public:
  explicit TraceMemory(size_t blocks)
      : threads_(blocks * kThreads),
        elements_(std::vector<float>(threads_ * kRoom, 0.0f)),
        counts_(std::vector<float>(threads_, 0.0f)) {}

  Trace trace() const {
    float *e = elements_, *c = counts_;
    return {reinterpret_cast<unsigned*>(e), reinterpret_cast<unsigned*>(c), kRoom};
  }

  /// Wrong where a warp's k-th access touches more sectors than its bytes need. Rows have to begin
  /// at sectors.
  std::string expect_together(const char* accesses) const {
    const std::vector<unsigned> elements = words_of(elements_), counts = words_of(counts_);
    size_t moved = 0, used = 0;
    for (size_t warp = 0; warp < threads_ / kWarp; ++warp)
      for (unsigned k = 0; k < kRoom; ++k) {
        std::set<unsigned> sectors, touched;
        for (size_t lane = warp * kWarp; lane < (warp + 1) * kWarp; ++lane)
          if (k < counts[lane]) {
            touched.insert(elements[lane * kRoom + k]);
            sectors.insert(elements[lane * kRoom + k] * 4 / kSector);
          }
        if (touched.empty()) continue;
        moved += sectors.size() * kSector;
        used += touched.size() * 4;
        const size_t least = (touched.size() * 4 + kSector - 1) / kSector;
        if (sectors.size() > least)
          wrong("warp ", warp % (kThreads / kWarp), " of block ", warp / (kThreads / kWarp),
                ": its ", accesses, " number ", k, " are of elements ",
                elements[warp * kWarp * kRoom + k], ", ", elements[(warp * kWarp + 1) * kRoom + k],
                ", ", elements[(warp * kWarp + 2) * kRoom + k],
                ", ... by threads 0, 1, 2, ... They lie in ", sectors.size(), " sectors of ",
                kSector, " bytes, and ", least, " would hold as many: ", sectors.size() * kSector,
                " bytes are moved for ", touched.size() * 4, " that are used");
      }
    expect(used != 0, "no ", accesses, " at all");
    return words(moved, " bytes moved for ", used, " used");
  }

 private:
  size_t threads_;
  DeviceFloats elements_, counts_;

  static std::vector<unsigned> words_of(const DeviceFloats& memory) {
    std::vector<unsigned> words;
    for (float f : memory.host()) words.push_back(__float_as_uint(f));
    return words;
  }
};

struct Run {
  std::string loads, stores;
};

std::vector<float> some_x(int rows, int columns) {
  std::vector<float> x(size_t(rows) * size_t(columns));
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i);
  return x;
}

/// Numbers and checker, in several orders of threads.
std::string check_numbers(const CoalescedLab& answer, int rows, int columns) {
  const std::vector<float> x = some_x(rows, columns);
  for (const Order& order : orders()) {
    fresh_gpu(order);
    const std::string run = words("threads in the order \"", order.name, "\"");
    const size_t blocks = size_t((rows + 31) / 32) * size_t((columns + 31) / 32);
    const TraceMemory loads(blocks), stores(blocks);
    const DeviceFloats in(x), out(std::vector<float>(x.size(), -1.0f));
    expect_no_report(answer.transpose({in, loads.trace()}, {out, stores.trace()}, rows, columns),
                     run);
    const std::vector<float> y = out.host();
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) {
        const float got = y[size_t(c * rows + r)], want = x[size_t(r * columns + c)];
        expect(got == want, run, ": element (", c, ", ", r, ") of the result is ", got,
               ", expected element (", r, ", ", c, ") of x, ", want);
      }
  }
  return words(x.size(), " numbers are right in ", orders().size(), " orders of threads");
}

std::string check_accesses(const CoalescedLab& answer, bool stores_too) {
  constexpr int kRows = 64, kColumns = 96;
  fresh_gpu(orders()[0]);
  const std::vector<float> x = some_x(kRows, kColumns);
  const TraceMemory loads(6), stores(6);
  const DeviceFloats in(x), out(x.size());
  expect_no_report(answer.transpose({in, loads.trace()}, {out, stores.trace()}, kRows, kColumns),
                   "64 rows of 96");
  return stores_too ? stores.expect_together("stores") : loads.expect_together("loads");
}

}  // namespace

void grade(const CoalescedLab& answer, Report& report) {
  report.step("64 rows of 96", "the checker names both accesses: chapter 11",
              [&] { return check_numbers(answer, 64, 96); });
  report.step("70 rows of 45: tiles that are cut off",
              "which elements of the last tiles are there?",
              [&] { return check_numbers(answer, 70, 45); });
  const std::string where =
      "neighbouring threads of a warp should touch neighbouring elements; memory that a block "
      "shares "
      "can be read in any order: task.md, \"What a warp's access costs\", and chapter 11";
  report.step("loads of one warp", where, [&] { return check_accesses(answer, false); });
  report.step("stores of one warp", where, [&] { return check_accesses(answer, true); });
}

}  // namespace ramet::labs
