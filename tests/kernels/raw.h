// What kernel tests share: raw buffers of any dtype, deterministic values, and every variant and
// thread count in turn.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "runtime/base/half.h"
#include "runtime/base/thread_pool.h"
#include "tests/variants.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace ramet::kernels::raw {

/// A small generator with fixed constants: the same values everywhere.
class Values {
 public:
  explicit Values(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  uint64_t bits() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_ * 0x2545F4914F6CDD1Dull;
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double signed_unit() { return 2 * unit() - 1; }

 private:
  uint64_t state_;
};

inline double read(const void* p, ScalarType t, int64_t i) {
  switch (t) {
    case ScalarType::Byte: return static_cast<const uint8_t*>(p)[i];
    case ScalarType::Char: return static_cast<const int8_t*>(p)[i];
    case ScalarType::Short: return static_cast<const int16_t*>(p)[i];
    case ScalarType::Int: return static_cast<const int32_t*>(p)[i];
    case ScalarType::Long: return static_cast<double>(static_cast<const int64_t*>(p)[i]);
    case ScalarType::Half: return static_cast<const Half*>(p)[i];
    case ScalarType::BFloat16: return static_cast<const BFloat16*>(p)[i];
    case ScalarType::Float: return static_cast<const float*>(p)[i];
    case ScalarType::Double: return static_cast<const double*>(p)[i];
    default: return static_cast<const bool*>(p)[i];
  }
}
inline void write(void* p, ScalarType t, int64_t i, double v) {
  switch (t) {
    case ScalarType::Byte:
      static_cast<uint8_t*>(p)[i] = static_cast<uint8_t>(static_cast<int64_t>(v));
      break;
    case ScalarType::Char:
      static_cast<int8_t*>(p)[i] = static_cast<int8_t>(static_cast<int64_t>(v));
      break;
    case ScalarType::Short:
      static_cast<int16_t*>(p)[i] = static_cast<int16_t>(static_cast<int64_t>(v));
      break;
    case ScalarType::Int:
      static_cast<int32_t*>(p)[i] = static_cast<int32_t>(static_cast<int64_t>(v));
      break;
    case ScalarType::Long: static_cast<int64_t*>(p)[i] = static_cast<int64_t>(v); break;
    case ScalarType::Half: static_cast<Half*>(p)[i] = Half(static_cast<float>(v)); break;
    case ScalarType::BFloat16:
      static_cast<BFloat16*>(p)[i] = BFloat16(static_cast<float>(v));
      break;
    case ScalarType::Float: static_cast<float*>(p)[i] = static_cast<float>(v); break;
    case ScalarType::Double: static_cast<double*>(p)[i] = v; break;
    default: static_cast<bool*>(p)[i] = v != 0;
  }
}

/// n elements of one dtype with 64 bytes of guard on either side; `guards_intact` finds a write
/// outside. Under ASan a read there is an error as well.
class Buffer {
 public:
  Buffer(int64_t n, ScalarType t)
      : dtype(t), size(n), bytes_(static_cast<size_t>(n) * item_size(t) + 192, kGuard) {
    guard(true);
  }
  ~Buffer() { guard(false); }
  void* data() { return begin(); }
  const void* data() const { return const_cast<Buffer*>(this)->begin(); }
  template <class T> T* as() { return static_cast<T*>(data()); }
  double operator[](int64_t i) const { return read(data(), dtype, i); }
  void set(int64_t i, double v) { write(data(), dtype, i, v); }
  Buffer& fill(Values& v, double scale = 1) {
    for (int64_t i = 0; i < size; ++i)
      set(i, is_floating(dtype)
                 ? scale * v.signed_unit()
                 : static_cast<double>(v.below(19) - (dtype == ScalarType::Byte ? 0 : 9)));
    return *this;
  }
  Buffer& fill(double v) {
    for (int64_t i = 0; i < size; ++i) set(i, v);
    return *this;
  }
  bool same_bits(const Buffer& o) const {
    return size == o.size &&
           std::memcmp(data(), o.data(), static_cast<size_t>(size) * item_size(dtype)) == 0;
  }
  bool guards_intact() const {
    const auto* p = static_cast<const unsigned char*>(data());
    const size_t n = bytes();
    guard(false);
    bool intact = true;
    for (int i = 1; i <= 64; ++i)
      intact = intact && p[-i] == kGuard && p[n + static_cast<size_t>(i) - 1] == kGuard;
    guard(true);
    return intact;
  }
  Buffer(const Buffer& o) : Buffer(o.size, o.dtype) {
    if (size) std::memcpy(data(), o.data(), bytes());
  }
  Buffer& operator=(const Buffer& o) {
    if (this != &o) {
      guard(false);
      dtype = o.dtype, size = o.size, bytes_.assign(o.bytes_.size(), kGuard);
      if (size) std::memcpy(data(), o.data(), bytes());
      guard(true);
    }
    return *this;
  }

  ScalarType dtype;
  int64_t size;

 private:
  static constexpr unsigned char kGuard = 0xA5;
  size_t bytes() const { return static_cast<size_t>(size) * item_size(dtype); }
  void guard([[maybe_unused]] bool on) const {
#ifdef __SANITIZE_ADDRESS__
    const auto* first = bytes_.data();
    const auto* begin = static_cast<const unsigned char*>(data());
    const auto* end = begin + bytes();
    if (on) {
      ASAN_POISON_MEMORY_REGION(first, begin - first);
      ASAN_POISON_MEMORY_REGION(end, first + bytes_.size() - end);
    } else {
      ASAN_UNPOISON_MEMORY_REGION(first, bytes_.size());
    }
#endif
  }
  unsigned char* begin() {
    auto p = reinterpret_cast<uintptr_t>(bytes_.data()) + 64;
    return reinterpret_cast<unsigned char*>((p + 63) / 64 * 64);  // aligned to 64
  }
  std::vector<unsigned char> bytes_;
};

/// Strides with the dimensions in a random order, with gaps, and with some of 0 if `repeats`.
/// Returns the number of elements from the first to the last.
inline int64_t random_strides(Values& v, int rank, const int64_t* sizes, bool repeats,
                              int64_t* strides) {
  std::vector<int> order;
  for (int d = 0; d < rank; ++d)
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(v.below(d + 1)), d);
  int64_t step = v.below(3) == 0 ? 2 + v.below(2) : 1;
  for (int d : order) {
    const bool repeated = repeats && v.below(4) == 0;
    strides[d] = repeated ? 0 : step;
    if (!repeated) step *= sizes[d] + (v.below(5) == 0 ? 1 : 0);
  }
  return step;
}
/// Where element i lies, in row-major order of the indices.
inline int64_t offset_of(int64_t i, int rank, const int64_t* sizes, const int64_t* strides) {
  int64_t at = 0;
  for (int d = rank - 1; d >= 0; i /= sizes[d--]) at += i % sizes[d] * strides[d];
  return at;
}

inline const Stream kCpuStream{Device(kCPU, 0), 0};

/// Calls f for every variant that is here.
inline void for_each_variant(const std::function<void(Variant)>& f) {
  for (Variant v : testing::variants_here()) {
    SCOPED_TRACE(std::string("variant ") + variant_name(v));
    set_variant(v);
    f(v);
  }
}

/// Runs `f` (which fills the buffer it gets) under v3 and v4 with 1, 2, 3 and 7 threads, and the
/// baseline with 1 and 3. Expects the same bits within {v3, v4} and within {base}. Leaves the
/// result of the last run in `out`.
inline void expect_same_bits(Buffer& out, const std::function<void(Buffer&)>& f) {
  const Buffer start = out;
  const int threads = get_num_threads();
  for (int pass = 0; pass < 2; ++pass) {
    bool first = true;
    Buffer reference = start;
    for (Variant v : testing::variants_here()) {
      if ((v == Variant::kBase) != (pass == 0)) continue;
      for (int n : {1, 2, 3, 7}) {
        if (pass == 0 && n != 1 && n != 3) continue;
        set_variant(v);
        set_num_threads(n);
        out = start;
        f(out);
        EXPECT_TRUE(out.guards_intact()) << "a write outside the result";
        if (first) reference = out, first = false;
        else
          EXPECT_TRUE(reference.same_bits(out))
              << "variant " << static_cast<int>(v) << ", " << n << " threads";
      }
    }
  }
  set_num_threads(threads);
}
/// The same for run(), which fills these buffers.
inline void expect_same_bits(const std::vector<Buffer*>& outputs,
                             const std::function<void()>& run) {
  size_t bytes = 0;
  for (const Buffer* o : outputs) bytes += static_cast<size_t>(o->size) * item_size(o->dtype);
  Buffer all(static_cast<int64_t>(bytes), kByte);
  expect_same_bits(all, [&](Buffer& to) {
    run();
    char* next = to.as<char>();
    for (const Buffer* o : outputs) {
      EXPECT_TRUE(o->guards_intact()) << "a write outside a result";
      const size_t n = static_cast<size_t>(o->size) * item_size(o->dtype);
      if (n > 0) std::memcpy(next, o->data(), n);
      next += n;
    }
  });
}

}  // namespace ramet::kernels::raw
