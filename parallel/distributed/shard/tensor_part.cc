#include "parallel/distributed/shard/tensor_part.h"

#include <algorithm>

namespace ramet::distributed {
namespace {

constexpr const char* kOp = "TensorPart";

// Appends a run, and joins it to the last run if it continues that one.
void add(std::vector<PartRun>& runs, const PartRun& r) {
  if (r.length == 0) return;
  if (!runs.empty() && runs.back().whole + runs.back().length == r.whole &&
      runs.back().local + runs.back().length == r.local) {
    runs.back().length += r.length;
  } else {
    runs.push_back(r);
  }
}

int64_t checked_product(int64_t a, int64_t b, const std::string& name) {
  int64_t product;
  RAMET_CHECK(!__builtin_mul_overflow(a, b, &product), kOp, "\"", name,
              "\": too many elements: ", a, " x ", b);
  return product;
}

// How many of `before` elements `cut` leaves.
int64_t kept(const std::string& name, int64_t before, const Cut& c) {
  const bool sane = c.outer >= 0 && c.extent >= 0 && c.inner >= 0 && c.begin >= 0 && c.length >= 0;
  RAMET_CHECK(sane && c.begin <= c.extent && c.length <= c.extent - c.begin, kOp, "\"", name,
              "\": got the cut [", c.begin, ", ", c.begin, " + ", c.length, ") of ", c.extent,
              " (outer ", c.outer, ", inner ", c.inner, "), expected one inside its extent");
  const int64_t all = checked_product(checked_product(c.outer, c.extent, name), c.inner, name);
  RAMET_CHECK(all == before, kOp, "\"", name, "\": got a cut of ", c.outer, " x ", c.extent, " x ",
              c.inner, " elements, expected ", before);
  return c.outer * c.length * c.inner;
}

}  // namespace

int64_t elements_of(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (const int64_t size : sizes) n *= size;
  return n;
}

int64_t elements_of(const std::string& name, const std::vector<int64_t>& sizes,
                    const std::vector<Cut>& cuts) {
  int64_t n = 1;
  for (const int64_t size : sizes) {
    RAMET_CHECK(size >= 0, kOp, "\"", name, "\": got a size of ", size, ", expected at least 0");
    n = checked_product(n, size, name);
  }
  for (const Cut& c : cuts) n = kept(name, n, c);
  return n;
}

std::vector<PartRun> runs_of(const std::string& name, const std::vector<int64_t>& sizes,
                             const std::vector<Cut>& cuts) {
  (void)elements_of(name, sizes, cuts);  // checks that they fit each other
  std::vector<PartRun> runs;
  add(runs, {0, 0, elements_of(sizes)});
  for (const Cut& c : cuts) {
    std::vector<PartRun> rest;
    auto from = runs.begin();
    const int64_t row = c.length * c.inner;
    for (int64_t o = 0; o < c.outer && row > 0; ++o) {
      // Elements [begin, begin + row) of the input, in increasing order of o.
      const int64_t begin = (o * c.extent + c.begin) * c.inner;
      while (from->local + from->length <= begin) ++from;
      for (auto r = from; r != runs.end() && r->local < begin + row; ++r) {
        const int64_t first = std::max(begin, r->local),
                      last = std::min(begin + row, r->local + r->length);
        add(rest, {r->whole + (first - r->local), o * row + (first - begin), last - first});
      }
    }
    runs = std::move(rest);
  }
  return runs;
}

std::vector<CopyRun> intersect(const std::vector<PartRun>& from, const std::vector<PartRun>& to) {
  std::vector<CopyRun> copies;
  for (auto a = from.begin(), b = to.begin(); a != from.end() && b != to.end();) {
    const int64_t first = std::max(a->whole, b->whole),
                  last = std::min(a->whole + a->length, b->whole + b->length);
    if (first < last)
      copies.push_back(
          {a->local + (first - a->whole), b->local + (first - b->whole), last - first});
    if (a->whole + a->length < b->whole + b->length) ++a;
    else ++b;
  }
  return copies;
}

std::vector<PartRun> subtract(const std::vector<PartRun>& part, const std::vector<PartRun>& other) {
  std::vector<PartRun> rest;
  auto o = other.begin();
  for (const PartRun& r : part) {
    int64_t at = r.whole;
    const int64_t end = r.whole + r.length;
    const auto keep = [&](int64_t until) {
      if (until > at) add(rest, {at, r.local + (at - r.whole), until - at});
    };
    while (o != other.end() && o->whole + o->length <= at) ++o;
    for (auto p = o; p != other.end() && p->whole < end; ++p) {
      keep(p->whole);
      at = std::max(at, p->whole + p->length);
    }
    keep(end);
  }
  return rest;
}

}  // namespace ramet::distributed
