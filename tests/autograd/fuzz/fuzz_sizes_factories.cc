// Rows of random sizes: tensors from nothing, and random numbers.
#include <sys/stat.h>

#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_rows.h"

namespace ramet {
namespace fuzz {

namespace {

using List = std::vector<int64_t>;

Right made(const List& sizes, bool fine = true) {
  return right_if(fine && std::none_of(sizes.begin(), sizes.end(), [](int64_t n) { return n < 0; }),
                  wide(sizes));
}

// Even where strides of 0 make less of them: elements that have fewer than 2^63 bytes as float32.
bool addressable(const std::vector<int64_t>& sizes) {
  WideShape bytes = wide(sizes);
  if (std::find(sizes.begin(), sizes.end(), 0) == sizes.end()) bytes.push_back(4);
  return possible(bytes);
}

// How many numbers they reach from `offset` on; nothing: the arguments are wrong.
std::optional<double> reach_of(const List& sizes, const List& strides, int64_t offset) {
  if (sizes.size() != strides.size() || !addressable(sizes) || offset < 0) return std::nullopt;
  double reach = 1 + static_cast<double>(offset);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (strides[i] < 0) return std::nullopt;
    reach += static_cast<double>(sizes[i] - 1) * static_cast<double>(strides[i]);
  }
  return std::find(sizes.begin(), sizes.end(), 0) == sizes.end() ? reach : 0;
}
// In memory just large enough.
Right with_strides(const List& sizes, const List& strides) {
  const auto reach = reach_of(sizes, strides, 0);
  return made(sizes, reach && *reach <= 1e6);
}
Tensor strided(const List& sizes, const List& strides) {
  const Tensor x = empty_strided(sizes, strides);
  if (x.dim() > 1) (void)x.diagonal();
  (void)x.unsqueeze(0);
  return x;
}

// Whether random integers of [low, high) fit their dtype: here int64 and int8.
bool drawable(int64_t low, int64_t high, ScalarType t) {
  return low < high && (t == kLong || (low >= -128 && high <= 128));
}

Right drawn(const Right& right, int64_t low, int64_t high, bool int8, bool from_zero) {
  return drawable(from_zero ? 0 : low, high, int8 ? kChar : kLong) ? right : refused();
}
Tensor random_of(const Tensor& x, int64_t from, int64_t to, int64_t how) {
  if (how == 0) x.random_(to);
  else x.random_(from, how == 1 ? std::optional<int64_t>(to) : std::nullopt);
  return x;
}
bool random_fits(int64_t from, int64_t to, ScalarType t, int64_t how) {
  return how == 0   ? drawable(0, to, t)
         : how == 1 ? drawable(from, to, t)
                    : t == kLong || (from >= -128 && from <= 127);
}
ScalarType narrow_if(bool int8) { return int8 ? kChar : kLong; }

Right counted(int64_t start, int64_t end, int64_t step) {
  const Wide gap = Wide{end} - start;
  if (step == 0 || (gap > 0 && step < 0) || (gap < 0 && step > 0)) return std::nullopt;
  return one({above(step > 0 ? gap : -gap, step > 0 ? Wide{step} : -Wide{step})});
}
Right sampled(const Tensor& x, int64_t samples, bool again) {
  const Wide all = x.size(-1);
  return samples > 0 && (again || samples <= all)
             ? with(wide(x.sizes()), static_cast<size_t>(x.dim()) - 1, samples)
             : refused();
}
// Of zeros, or of the numbers 2.
Tensor labels(const Tensor& x, bool twos) { return x.mul(twos ? 2 : 1).to(kLong); }
Right encoded(const Tensor& labels, int64_t classes) {
  const int64_t largest = labels.numel() ? labels.max().item<int64_t>() : -1;
  const Wide n = classes == -1 ? Wide{largest} + 1 : Wide{classes};
  WideShape shape = wide(labels.sizes());
  shape.push_back(n);
  return right_if(n > 0 && largest < n, shape);
}
// Of this program's own file, which is read anyway.
const char* const kFile = "/proc/self/exe";
int64_t floats_in_file() {
  struct stat info {};
  ::stat(kFile, &info);
  return info.st_size / 4;
}

}  // namespace

#define SIZED(name, ...) ROW(name, (Numbers<0, 4> sizes), made(sizes), __VA_ARGS__)
// Lists on the host in addition to the result.
#define WINDOW(name) COSTLY(name, 8, (Number n, bool periodic), made({n}), name(n, periodic))
#define SPACED(name, cost)                                            \
  COSTLY(name, cost, (Number steps, Within<0, 3> how), made({steps}), \
         how == 0   ? name(0, 1, steps)                               \
         : how == 1 ? name(tensor(0.), 1, steps)                      \
         : how == 2 ? name(0, tensor(1.), steps)                      \
                    : name(tensor(0.), tensor(1.), steps))

std::vector<SizeRow> size_rows_of_factories() {
  static char memory[64];
  return {
      SIZED(zeros, zeros(sizes)),
      SIZED(ones, ones(sizes)),
      SIZED(empty, ramet::empty(sizes)),
      SIZED(full, full(sizes, 1.5)),
      SIZED(rand, rand(sizes)),
      SIZED(randn, randn(sizes)),
      SIZED(normal, normal(0, 1, sizes)),
      SIZED(new_empty, ones({}).new_empty(sizes)),
      SIZED(new_full, ones({}).new_full(sizes, 2)),
      SIZED(new_ones, ones({}).new_ones(sizes)),
      SIZED(new_zeros, ones({}).new_zeros(sizes)),
      ROW(empty, (Numbers<4, 4> sizes), made(sizes),
          ramet::empty(sizes, {}, MemoryFormat::ChannelsLast)),
      VIEW(empty_strided, (Numbers<0, 3> sizes, Numbers<0, 3> strides),
           with_strides(sizes, strides), strided(sizes, strides)),
      VIEW(new_empty_strided, (Numbers<0, 3> sizes, Numbers<0, 3> strides),
           with_strides(sizes, strides), ones({}).new_empty_strided(sizes, strides)),
      WINDOW(bartlett_window),
      WINDOW(blackman_window),
      WINDOW(hamming_window),
      WINDOW(hann_window),
      WINDOW(kaiser_window),
      SPACED(logspace, 4),
      SPACED(linspace, 1),
      COSTLY(vander, 4, (Some<1, 1> x, Number n, bool increasing), right_if(n >= 0, {x.size(0), n}),
             vander(x, n, increasing)),
      {"from_blob",
       [](SizeDraw& d) {
         const List sizes = d.numbers("sizes", 0, 3);
         const bool given = d.flag("with strides");
         const List strides = given                ? d.numbers("strides", 0, 3)
                              : addressable(sizes) ? contiguous_strides(sizes)
                                                   : List();
         const int64_t offset = given ? d.number("storage_offset") : 0;
         const auto reach = reach_of(sizes, strides, offset);
         d.expect_view(made(sizes, reach && *reach < 0x1p47 / 4), [&] {  // bytes of float32
           return given ? from_blob(memory, sizes, strides, offset, [](void*) {})
                        : from_blob(memory, sizes);
         });
       }},
      ROW(from_file, (Number n), made({n}, n <= floats_in_file()),
          from_file(kFile, false, n, kFloat)),
      ROW(eye, (Number n, Number m, bool square), made({n, square ? n : m}),
          square ? eye(n) : eye(n, m)),
      ROW(arange, (Number end), counted(0, end, 1), arange(end.value)),
      ROW(arange, (Number start, Number end), counted(start, end, 1),
          arange(start.value, end.value)),
      ROW(arange, (Number start, Number end, Number step, bool floats), counted(start, end, step),
          floats ? arange(start.value, end.value, step.value, kFloat)
                 : arange(start.value, end.value, step.value)),
      ROW(randint, (Number low, Number high, bool int8, bool from_zero, Numbers<0, 3> sizes),
          drawn(made(sizes), low, high, int8, from_zero),
          from_zero ? randint(high, sizes, narrow_if(int8))
                    : randint(low, high, sizes, narrow_if(int8))),
      ROW(randint_like, (Any x, Number low, Number high, bool int8, bool from_zero),
          drawn(as(x), low, high, int8, from_zero),
          from_zero ? randint_like(x, high.value, narrow_if(int8))
                    : randint_like(x, low.value, high.value, narrow_if(int8))),
      ROW(random_, (Any x, bool int8, Number from, Number to, Within<0, 2> how),
          as(x, random_fits(from, to, narrow_if(int8), how)),
          random_of(x.to(narrow_if(int8)), from, to, how)),
      COSTLY(randperm, 8, (Number n), made({n}), randperm(n)),
      COSTLY(multinomial, 4, (Some<1, 2, 1> x, Number samples, bool replacement),
             sampled(x, samples, replacement), multinomial(x, samples, replacement)),
      COSTLY(one_hot, 2, (Any x, bool twos, Number classes), encoded(labels(x, twos), classes),
             one_hot(labels(x, twos), classes)),
  };
}

}  // namespace fuzz
}  // namespace ramet
