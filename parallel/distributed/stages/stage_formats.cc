// Wire formats: 16-bit floating point, 8-bit integers with scales.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "autograd/ops/make/copy.h"
#include "kernels/random/random.h"
#include "parallel/distributed/group/collectives_internal.h"
#include "parallel/distributed/stages/stages.h"
#include "runtime/base/checked_size.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ramet::distributed {

using detail::over_memory;

namespace {

class Float16 final : public WireFormat {
 public:
  explicit Float16(ScalarType dtype) : dtype_(dtype) {}
  std::string description() const override { return dtype_ == kHalf ? "fp16" : "bf16"; }
  bool lossless() const override { return false; }
  size_t bytes(int64_t n) const override { return static_cast<size_t>(n) * 2; }
  void encode(const float* in, int64_t n, void* out, const WireKey&) const override {
    autograd::copy_values(over_memory(out, n, dtype_), over_memory(in, n, kFloat));
  }
  void decode(const void* in, int64_t n, float* out) const override {
    autograd::copy_values(over_memory(out, n, kFloat), over_memory(in, n, dtype_));
  }

 private:
  const ScalarType dtype_;
};

// A block is its scale, a float, and a byte for each element.
class Int8 final : public WireFormat {
 public:
  Int8(int64_t block, uint64_t seed) : block_(block), seed_(seed) {
    RAMET_CHECK(block >= 8 && block <= 65536 && (block & (block - 1)) == 0, "int8_stage",
                "block: got ", block, ", expected a power of two from 8 to 65536");
  }
  std::string description() const override {
    return "int8(block " + std::to_string(block_) + ", seed " + std::to_string(seed_) + ")";
  }
  bool lossless() const override { return false; }
  int64_t block() const override { return block_; }
  size_t bytes(int64_t n) const override {
    return static_cast<size_t>(n) + static_cast<size_t>(ceil_div(n, block_)) * sizeof(float);
  }

  void encode(const float* in, int64_t n, void* out, const WireKey& key) const override {
    const uint64_t seed = XXH3_64bits_withSeed(key.name.data(), key.name.size(), seed_);
    const uint64_t stream = static_cast<uint64_t>(key.step) << 32 | static_cast<uint32_t>(key.role);
    // A portion is a number of whole blocks with random numbers that fit the cache.
    const int64_t portion = std::max<int64_t>(block_, 4096);
    std::vector<float> draws(static_cast<size_t>(std::min(n, portion)));
    char* to = static_cast<char*>(out);
    for (int64_t first = 0; first < n; first += portion) {
      const int64_t here = std::min(portion, n - first);
      kernels::random_uniform(
          {Device(kCPU, 0), 0},
          {draws.data(), here, {seed, stream, key.first + first}, 0, 1, kFloat});
      for (int64_t i = 0; i < here; i += block_)
        to = encode_block(in + first + i, draws.data() + i, std::min(block_, here - i), to);
    }
  }

  void decode(const void* in, int64_t n, float* out) const override {
    const char* from = static_cast<const char*>(in);
    for (int64_t first = 0; first < n; first += block_) {
      const int64_t here = std::min(block_, n - first);
      float scale;
      std::memcpy(&scale, from, sizeof(scale));
      const auto* q = reinterpret_cast<const int8_t*>(from + sizeof(scale));
      for (int64_t i = 0; i < here; ++i) out[first + i] = scale * static_cast<float>(q[i]);
      from += sizeof(scale) + static_cast<size_t>(here);
    }
  }

 private:
  static char* encode_block(const float* x, const float* draw, int64_t n, char* to) {
    float most = 0, wrong = 0;  // wrong: NaN if an element is not finite
    for (int64_t i = 0; i < n; ++i) {
      most = std::max(most, std::fabs(x[i]));
      wrong += x[i] * 0.0f;
    }
    const bool finite = wrong == 0;
    const float scale = finite ? most / 127.0f : NAN;
    std::memcpy(to, &scale, sizeof(scale));
    auto* q = reinterpret_cast<int8_t*>(to + sizeof(scale));
    if (!(scale >= FLT_MIN)) {  // scale NaN: each q = 1 decodes to NaN
      std::memset(q, finite ? 0 : 1, static_cast<size_t>(n));
    } else {
      const float per_step = 1.0f / scale;
      for (int64_t i = 0; i < n; ++i) {
        const float t = x[i] * per_step;  // at most 127 and a rounding error
        const auto whole = static_cast<float>(static_cast<int32_t>(t));
        const float below = whole - (t < whole ? 1.0f : 0.0f);
        const float up = draw[i] < t - below ? 1.0f : 0.0f;
        q[i] = static_cast<int8_t>(std::min(127.0f, std::max(-127.0f, below + up)));
      }
    }
    return to + sizeof(scale) + n;
  }

  const int64_t block_;
  const uint64_t seed_;
};

}  // namespace

std::shared_ptr<CommStage> fp16_stage() { return std::make_shared<Float16>(kHalf); }
std::shared_ptr<CommStage> bf16_stage() { return std::make_shared<Float16>(kBFloat16); }
std::shared_ptr<CommStage> int8_stage(int64_t block, uint64_t seed) {
  return std::make_shared<Int8>(block, seed);
}

}  // namespace ramet::distributed
