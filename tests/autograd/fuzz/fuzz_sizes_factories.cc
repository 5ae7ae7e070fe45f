// Rows of random sizes: tensors from nothing, and random numbers.
#include <sys/stat.h>

#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_sizes.h"

namespace ramet {
namespace fuzz {

namespace {

Right made(const std::vector<int64_t>& sizes) {
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t n) { return n < 0; })) return std::nullopt;
  return one(wide(sizes));
}

// Even where strides of 0 make less of them: elements that have fewer than 2^63 bytes as float32.
bool addressable(const std::vector<int64_t>& sizes) {
  WideShape bytes = wide(sizes);
  if (std::find(sizes.begin(), sizes.end(), 0) == sizes.end()) bytes.push_back(4);
  return possible(bytes);
}

template <class Make> SizeRow of_sizes(const char* name, const Make& make) {
  return {name, [make](SizeDraw& d) {
            const std::vector<int64_t> sizes = d.numbers("size", 0, 4);
            d.expect(made(sizes), [&] { return make(sizes); });
          }};
}

// Of sizes with strides, in memory just large enough.
template <class Make> SizeRow of_strides(const char* name, const Make& make) {
  return {name, [make](SizeDraw& d) {
            const std::vector<int64_t> sizes = d.numbers("size", 0, 3),
                                       strides = d.numbers("stride", 0, 3);
            Right right = made(sizes);
            if (sizes.size() != strides.size() || !addressable(sizes)) right = std::nullopt;
            double reach = 1;
            for (size_t i = 0; right && i < sizes.size(); ++i) {
              if (strides[i] < 0) right = std::nullopt;
              reach += static_cast<double>(sizes[i] - 1) * static_cast<double>(strides[i]);
            }
            const bool none = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
            if (!none && reach > 1e6) right = std::nullopt;  // more than memory
            d.expect_view(right, [&] { return make(sizes, strides); });
          }};
}

// Whether random integers of [low, high) fit their dtype: here int64 and int8.
bool drawable(int64_t low, int64_t high, ScalarType t) {
  return low < high && (t == kLong || (low >= -128 && high <= 128));
}

// A window of so many numbers.
template <class Make> SizeRow of_window(const char* name, const Make& make) {
  return {name, [make](SizeDraw& d) {
            const int64_t n = d.number("window_length");
            const bool periodic = d.flag("periodic");
            // Lists on the host in addition to the result.
            d.expect(
                made({n}), [&] { return make(n, periodic); }, 8);
          }};
}

Right counted(int64_t start, int64_t end, int64_t step) {
  const Wide gap = Wide{end} - start;
  if (step == 0 || (gap > 0 && step < 0) || (gap < 0 && step > 0)) return std::nullopt;
  return one({above(step > 0 ? gap : -gap, step > 0 ? Wide{step} : -Wide{step})});
}

}  // namespace

std::vector<SizeRow> size_rows_of_factories() {
  static char memory[64];
  return {
      of_sizes("zeros", [](IntArrayRef n) { return zeros(n); }),
      of_sizes("ones", [](IntArrayRef n) { return ones(n); }),
      of_sizes("empty", [](IntArrayRef n) { return empty(n); }),
      of_sizes("full", [](IntArrayRef n) { return full(n, 1.5); }),
      of_sizes("rand", [](IntArrayRef n) { return rand(n); }),
      of_sizes("randn", [](IntArrayRef n) { return randn(n); }),
      of_sizes("normal", [](IntArrayRef n) { return normal(0, 1, n); }),
      of_sizes("new_empty", [](IntArrayRef n) { return ones({}).new_empty(n); }),
      of_sizes("new_full", [](IntArrayRef n) { return ones({}).new_full(n, 2); }),
      of_sizes("new_ones", [](IntArrayRef n) { return ones({}).new_ones(n); }),
      of_sizes("new_zeros", [](IntArrayRef n) { return ones({}).new_zeros(n); }),
      {"empty",
       [](SizeDraw& d) {
         const std::vector<int64_t> sizes = d.numbers("size", 4, 4);
         d.expect(made(sizes), [&] { return empty(sizes, {}, MemoryFormat::ChannelsLast); });
       }},
      of_strides("empty_strided",
                 [](IntArrayRef sizes, IntArrayRef strides) {
                   const Tensor x = empty_strided(sizes, strides);
                   if (x.dim() > 1) (void)x.diagonal();
                   (void)x.unsqueeze(0);
                   return x;
                 }),
      of_strides("new_empty_strided",
                 [](IntArrayRef sizes, IntArrayRef strides) {
                   return ones({}).new_empty_strided(sizes, strides);
                 }),
      of_window("bartlett_window", [](int64_t n, bool p) { return bartlett_window(n, p); }),
      of_window("blackman_window", [](int64_t n, bool p) { return blackman_window(n, p); }),
      of_window("hamming_window", [](int64_t n, bool p) { return hamming_window(n, p); }),
      of_window("hann_window", [](int64_t n, bool p) { return hann_window(n, p); }),
      of_window("kaiser_window", [](int64_t n, bool p) { return kaiser_window(n, p); }),
      {"logspace",
       [](SizeDraw& d) {
         const int64_t steps = d.number("steps"), how = d.note("how", d.tape().below(4));
         const Tensor low = tensor(0.), high = tensor(1.);
         d.expect(
             made({steps}),
             [&] {
               return how == 0   ? logspace(0, 1, steps)
                      : how == 1 ? logspace(low, 1, steps)
                      : how == 2 ? logspace(0, high, steps)
                                 : logspace(low, high, steps);
             },
             4);
       }},
      {"vander",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(1, 1);
         const int64_t n = d.number("N");
         const bool increasing = d.flag("increasing");
         d.expect(
             n >= 0 ? one({x.size(0), n}) : Right(), [&] { return vander(x, n, increasing); }, 4);
       }},
      {"from_blob",
       [](SizeDraw& d) {
         const std::vector<int64_t> sizes = d.numbers("sizes", 0, 3);
         std::vector<int64_t> strides;
         const bool given = d.flag("with strides");
         if (given) strides = d.numbers("strides", 0, 3);
         const int64_t offset = given ? d.number("storage_offset") : 0;
         Right right = made(sizes);
         if (given && (sizes.size() != strides.size() || offset < 0)) right = std::nullopt;
         if (!addressable(sizes)) right = std::nullopt;
         const bool none = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
         Wide reach = 1 + Wide{offset}, run = 1;
         for (size_t i = sizes.size(); right && i-- > 0;) {
           const Wide stride = given ? Wide{strides[i]} : run;
           if (stride < 0) right = std::nullopt;
           reach += (Wide{sizes[i]} - 1) * stride;
           run *= std::max<Wide>(sizes[i], 1);
         }
         if (!none && reach >= (Wide{1} << 47) / 4) right = std::nullopt;  // bytes of float32
         d.expect_view(right, [&] {
           return given ? from_blob(memory, sizes, strides, offset, [](void*) {})
                        : from_blob(memory, sizes);
         });
       }},
      {"from_file",
       [](SizeDraw& d) {  // of float32, from a file that this program reads anyway
         const char* const path = "/proc/self/exe";
         struct stat info {};
         ::stat(path, &info);
         const int64_t n = d.number("size");
         d.expect(n <= info.st_size / 4 ? made({n}) : Right(),
                  [&] { return from_file(path, false, n, kFloat); });
       }},
      {"eye",
       [](SizeDraw& d) {
         const int64_t n = d.number("n"), m = d.number("m");
         const bool square = d.flag("square");
         d.expect(made({n, square ? n : m}), [&] { return square ? eye(n) : eye(n, m); });
       }},
      {"linspace",
       [](SizeDraw& d) {
         const int64_t steps = d.number("steps"), how = d.note("how", d.tape().below(4));
         const Tensor low = tensor(0.), high = tensor(1.);
         d.expect(made({steps}), [&] {
           return how == 0   ? linspace(0, 1, steps)
                  : how == 1 ? linspace(low, 1, steps)
                  : how == 2 ? linspace(0, high, steps)
                             : linspace(low, high, steps);
         });
       }},
      {"arange",
       [](SizeDraw& d) {
         const int64_t start = d.number("start"), end = d.number("end"), step = d.number("step"),
                       how = d.note("how", d.tape().below(4));
         const Right right = how == 0   ? counted(0, end, 1)
                             : how == 1 ? counted(start, end, 1)
                                        : counted(start, end, step);
         d.expect(right, [&] {
           return how == 0   ? arange(end)
                  : how == 1 ? arange(start, end)
                  : how == 2 ? arange(start, end, step)
                             : arange(start, end, step, kFloat);
         });
       }},
      {"randint",
       [](SizeDraw& d) {
         const int64_t low = d.number("low"), high = d.number("high");
         const ScalarType t = d.flag("int8") ? kChar : kLong;
         const bool from_zero = d.flag("from 0");
         const std::vector<int64_t> sizes = d.numbers("size", 0, 3);
         d.expect(drawable(from_zero ? 0 : low, high, t) ? made(sizes) : std::nullopt, [&] {
           return from_zero ? randint(high, sizes, t) : randint(low, high, sizes, t);
         });
       }},
      {"randint_like",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t low = d.number("low"), high = d.number("high");
         const ScalarType t = d.flag("int8") ? kChar : kLong;
         const bool from_zero = d.flag("from 0");
         const Right right =
             drawable(from_zero ? 0 : low, high, t) ? one(wide(x.sizes())) : Right();
         d.expect(right, [&] {
           return from_zero ? randint_like(x, high, t) : randint_like(x, low, high, t);
         });
       }},
      {"random_",
       [](SizeDraw& d) {
         const ScalarType t = d.flag("int8") ? kChar : kLong;
         const Tensor x = d.tensor().to(t);
         const int64_t from = d.number("from"), to = d.number("to"),
                       how = d.note("how", d.tape().below(3));
         const bool fine = how == 0   ? drawable(0, to, t)
                           : how == 1 ? drawable(from, to, t)
                                      : t == kLong || (from >= -128 && from <= 127);
         d.expect(fine ? one(wide(x.sizes())) : Right(), [&] {
           if (how == 0) x.random_(to);
           else x.random_(from, how == 1 ? std::optional<int64_t>(to) : std::nullopt);
           return x;
         });
       }},
      {"randperm",
       [](SizeDraw& d) {
         const int64_t n = d.number("n");
         d.expect(
             made({n}), [&] { return randperm(n); }, 8);
       }},
      {"multinomial",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(1, 2, 1);
         const int64_t samples = d.number("num_samples");
         const bool again = d.flag("replacement");
         WideShape shape = wide(x.sizes());
         const bool fine = samples > 0 && (again || samples <= shape.back());
         shape.back() = samples;
         d.expect(
             fine ? one(shape) : Right(), [&] { return multinomial(x, samples, again); }, 4);
       }},
      {"one_hot",
       [](SizeDraw& d) {
         const Tensor x = d.tensor().mul(d.flag("twos") ? 2 : 1).to(kLong);
         const int64_t classes = d.number("num_classes");
         WideShape shape = wide(x.sizes());
         const int64_t largest = x.numel() ? x.max().item<int64_t>() : -1;
         const Wide n = classes == -1 ? Wide{largest} + 1 : Wide{classes};
         shape.push_back(n);
         const bool fine = n > 0 && largest < n;
         d.expect(
             fine ? one(shape) : Right(), [&] { return one_hot(x, classes); }, 2);
       }},
  };
}

}  // namespace fuzz
}  // namespace ramet
