// The instructions of runtime/cuda/ptx_hopper.h: where a tile's elements lie, and products of
// tiles. Of real GPUs those of compute capability 9.0 run them.
#include "tests/runtime/cuda/hopper.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "tests/runtime/cuda/gpus.h"
#if RAMET_GPU_EMULATED
#include "tools/emulated_gpu/checker/checks.h"
#endif

namespace ramet::testing {
namespace {

using cuda::TensorMap;
using cuda::TiledMatrix;

/// Values of one type on GPU 0.
template <class T> class OnCard {
 public:
  explicit OnCard(const std::vector<T>& values) : count_(values.size()) {
    EXPECT_EQ(cudaMalloc(&memory_, count_ * sizeof(T)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memory_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  ~OnCard() { (void)cudaFree(memory_); }
  OnCard(const OnCard&) = delete;
  T* get() const { return static_cast<T*>(memory_); }
  std::vector<T> host() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaMemcpy(values.data(), memory_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  void* memory_ = nullptr;
  size_t count_;
};

uint16_t bits_of(__nv_bfloat16 x) {
  uint16_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
std::vector<uint16_t> drawn(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<uint16_t> values(count);
  for (uint16_t& v : values) v = bits_of(__nv_bfloat16(uniform(generator)));
  return values;
}
double value_of(uint16_t bits) {
  __nv_bfloat16 x;
  memcpy(static_cast<void*>(&x), &bits, sizeof bits);
  return static_cast<double>(static_cast<float>(x));
}

class Hopper : public ::testing::Test {
 protected:
  void SetUp() override {
    int major = 0, minor = 0;
    (void)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    (void)cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
    if (major != 9 || minor != 0)
      GTEST_SKIP() << "for cards of compute capability 9.0 only: got " << major << "." << minor;
  }
  const Gpus gpus_{gpu_settings(1)};
};

// [2 batches, 3 heads, 70 rows, 128 columns], laid out as [batch, row, head, column]. What products
// read at once, the same 16 bytes of eight rows and all of one row, lies in 32 different banks.
TEST_F(Hopper, TilesLieSwizzled) {
#if RAMET_GPU_EMULATED
  if (emulated::checks().grid_begin)
    GTEST_SKIP() << "of what bulk copies write the checker is told nothing";
#endif
  constexpr int64_t kHeads = 3, kRows = 70, kColumns = 128;
  std::vector<uint16_t> values(2 * kRows * kHeads * kColumns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint16_t>(i + 1);
  const OnCard<uint16_t> from(values);
  constexpr int kTile = 48;
  const TiledMatrix m{
      from.get(),        2,    kHeads, kRows, kColumns, kRows * kHeads * kColumns, kColumns,
      kHeads * kColumns, kTile};
  ASSERT_TRUE(cuda::has_tensor_map(m));
  const TensorMap map = cuda::tensor_map("test", 0, m);
  const OnCard<uint16_t> out(std::vector<uint16_t>(kTile * 64, 0xffff));
  for (const auto& at : {std::array<int, 4>{0, 0, 0, 0}, {64, 5, 2, 1}, {96, 60, 1, 0}}) {
    const int place[4] = {at[0], at[1], at[2], at[3]};
    ASSERT_EQ(hopper_tile(map, place, kTile, out.get(), nullptr), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const std::vector<uint16_t> got = out.host();
    for (int row = 0; row < kTile; ++row)
      for (int column = 0; column < 64; ++column) {
        const int64_t r = at[1] + row, c = at[0] + column;
        const int64_t index = ((at[3] * kRows + r) * kHeads + at[2]) * kColumns + c;
        const uint16_t want =
            r < kRows && c < kColumns ? values[static_cast<size_t>(index)] : uint16_t{0};
        // Note [Tiles of Hopper].
        const int piece = column / 8 ^ row % 8;
        ASSERT_EQ(got[static_cast<size_t>(row * 64 + piece * 8 + column % 8)], want)
            << row << " " << column << " from " << at[0] << " " << at[1];
      }
    if (at[1]) continue;  // of the first all elements are there, each once
    const auto banks = [&](bool of_rows, int other) {
      std::set<size_t> used;
      for (int i = 0; i < 8; ++i)
        for (int word = 0; word < 4; ++word) {
          const int row = of_rows ? i : other, column = (of_rows ? other : i) * 8 + word * 2;
          const uint16_t value = values[static_cast<size_t>(row * kHeads * kColumns + column)];
          const auto found = std::find(got.begin(), got.end(), value);
          used.insert(static_cast<size_t>(found - got.begin()) / 2 % 32);
        }
      return used.size();
    };
    for (int other = 0; other < 8; ++other) {
      EXPECT_EQ(banks(true, other), 32u);
      EXPECT_EQ(banks(false, other), 32u);
    }
  }
}

TEST(HopperTiles, WhichMatricesHaveMaps) {
  EXPECT_FALSE(cuda::has_tensor_map({nullptr, 1, 1, 1, 64, 64, 64, 64, 64}));
  alignas(16) static uint16_t memory[64];
  const auto has = [&](const void* data, int64_t batches, int64_t heads, int64_t rows,
                       int64_t batch, int64_t head, int64_t row) {
    return cuda::has_tensor_map({data, batches, heads, rows, 64, batch, head, row, 64});
  };
  EXPECT_TRUE(has(memory, 2, 3, 4, 1024, 64, 192));
  EXPECT_TRUE(has(memory, 1, 1, 1, 0, 0, 0));          // no dimension has a step
  EXPECT_FALSE(has(memory, 2, 1, 1, 0, 0, 0));         // the same batch twice
  EXPECT_FALSE(has(memory, 1, 1, 0, 64, 64, 64));      // no rows
  EXPECT_FALSE(has(memory, 1, 1, 2, 64, 64, 68));      // 136 bytes apart
  EXPECT_FALSE(has(memory + 1, 1, 1, 2, 64, 64, 64));  // misaligned
  EXPECT_FALSE(has(memory, 1, 2, 1, 64, int64_t{1} << 39, 64));
  EXPECT_FALSE(has(memory, 1, 1, 2, 64, 64, -64));
}

double worst_error(HopperForgotten forgotten, int columns) {
  const size_t n = static_cast<size_t>(columns);
  const std::vector<uint16_t> a = drawn(64 * 64, 1), b = drawn(128 * 64, 2), c = drawn(128 * n, 3);
  const OnCard<uint16_t> da(a), db(b), dc(c);
  const OnCard<float> ab(std::vector<float>(64 * 128, NAN)), abc(std::vector<float>(64 * n, NAN));
  const auto map = [](const OnCard<uint16_t>& x, int rows, int64_t width) {
    return cuda::tensor_map("test", 0, {x.get(), 1, 1, rows, width, 0, 0, width, rows});
  };
  EXPECT_EQ(hopper_products(forgotten, map(da, 64, 64), map(db, 128, 64), map(dc, 128, columns),
                            columns, ab.get(), abc.get(), nullptr),
            cudaSuccess);
  if (cudaDeviceSynchronize() != cudaSuccess) return INFINITY;
  const std::vector<float> first = ab.host(), second = abc.host();
  double worst = 0;
  const auto compare = [&](double got, double want) {
    const double error = std::fabs(got - want);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  };
  for (size_t i = 0; i < 64; ++i) {
    for (size_t j = 0; j < 128; ++j) {
      double want = 0;
      for (size_t k = 0; k < 64; ++k) want += value_of(a[i * 64 + k]) * value_of(b[j * 64 + k]);
      compare(static_cast<double>(first[i * 128 + j]), want);
    }
    for (size_t j = 0; j < n; ++j) {
      double want = 0;
      for (size_t k = 0; k < 128; ++k)
        want += value_of(bits_of(__nv_bfloat16(first[i * 128 + k]))) * value_of(c[k * n + j]);
      compare(static_cast<double>(second[i * n + j]), want);
    }
  }
  return worst;
}

TEST_F(Hopper, Products) {
  for (int columns : {64, 128}) EXPECT_LT(worst_error(HopperForgotten::Nothing, columns), 1e-4);
}

// Note [Late and early]: what is forgotten shows in every run.
TEST_F(Hopper, WhatIsForgottenShows) {
  RAMET_EMULATED_ONLY("products whose order is left to chance");
  for (HopperForgotten f : {HopperForgotten::Arrival, HopperForgotten::Wait, HopperForgotten::Fence,
                            HopperForgotten::Use}) {
    const Gpus fresh(gpu_settings(1));
    EXPECT_EQ(worst_error(f, 64), INFINITY) << static_cast<int>(f);
  }
}

}  // namespace
}  // namespace ramet::testing
