// How many blocks a GPU's sums have, whatever GPU there is. The cuts are those for a nominal GPU
// and follow from shapes. They are part of the bits.
#define RAMET_VARIANT here  // as kernel files have namespaces of theirs
#include "kernels/gpu/gpu_cuts.h"

#include <map>
#include <numeric>

#include "kernels/image/batch_norm.h"
#include "kernels/image/batch_norm_relu_pool.h"
#include "kernels/image/conv2d_weight_cut.h"
#include "kernels/index/cumulative_sum.h"
#include "kernels/index/index.h"
#include "kernels/matrix/matmul.h"
#include "kernels/reduce/reduce_plan.h"
#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

// A dense tensor of two dimensions, the first or the last reduced, or both.
ReduceArgs planned(int64_t rows, int64_t columns, bool first, bool last) {
  const int64_t sizes[] = {rows, columns}, strides[] = {columns, 1};
  const bool reduced[] = {first, last};
  ReduceArgs a{};
  a.op = ReduceOp::kSum;
  EXPECT_TRUE(plan_reduce(a, 2, sizes, strides, reduced, true));
  return a;
}
int64_t blocks_of(const ReduceArgs& a) { return reduce_gpu_grid(a).blocks; }

TEST(GpuCuts, FewLongSequencesFillTheNominalCard) {
  EXPECT_EQ(kNominalBlocks, 528) << "four for each of 132 multiprocessors";
  const ReduceArgs million = planned(1, 1 << 20, true, true);
  EXPECT_EQ(blocks_of(million), 512) << "2048 elements each; on a CPU it has 16 tasks";
  EXPECT_EQ(reduce_gpu_grid(million).join.blocks, 1);
  EXPECT_EQ(reduce_gpu_grid(million).join.threads, 256);
  EXPECT_EQ(blocks_of(planned(1, 1'000'000, true, true)), 489);
  EXPECT_EQ(blocks_of(planned(1, 100'000'000, true, true)), 526) << "the CPU has 1526 segments";
  EXPECT_EQ(blocks_of(planned(16, 10'000'000, false, true)), 528);
  EXPECT_EQ(planned(16, 10'000'000, false, true).segments, 33) << "the CPU does not cut it";
  EXPECT_EQ(reduce_gpu_grid(planned(16, 10'000'000, false, true)).join.threads, 32) << "an output";
  EXPECT_EQ(blocks_of(planned(200, 100'000, false, true)), 400);
  EXPECT_EQ(blocks_of(planned(300, 100'000, false, true)), 300) << "twice as many are too many";
  EXPECT_EQ(blocks_of(planned(1, 16383, true, true)), 1) << "too short for a second kernel";
  EXPECT_EQ(blocks_of(planned(1, 16384, true, true)), 8);
  EXPECT_EQ(reduce_gpu_grid(planned(1, 16384, true, true)).join.threads, 4);
}

TEST(GpuCuts, ColumnsFillTheNominalCard) {
  EXPECT_EQ(blocks_of(planned(131072, 15, true, false)), 512) << "256 rows each";
  EXPECT_EQ(blocks_of(planned(1 << 24, 2, true, false)), 528);
  EXPECT_EQ(blocks_of(planned(16384, 768, true, false)), 24 * 22) << "24 tiles of columns";
  EXPECT_EQ(blocks_of(planned(16384, 50304, true, false)), 1572) << "enough as they are";
  EXPECT_EQ(blocks_of(planned(511, 15, true, false)), 1);
  EXPECT_EQ(blocks_of(planned(512, 15, true, false)), 8);
  EXPECT_EQ(planned(1 << 20, 0, true, false).segments, 1) << "no result, no block";
  EXPECT_EQ(planned(0, 15, true, false).segments, 1);
}

TEST(GpuCuts, WeightsOfConvolutions) {
  const auto cut = [](int64_t n, int64_t groups, int64_t ci, int64_t co, int64_t k, int64_t out) {
    return here::ConvWeightCut(
        {n, ci, out, out, co, out, out, k, k, 1, 1, k / 2, k / 2, 1, 1, groups});
  };
  const auto expect = [](const here::ConvWeightCut& c, int64_t images, int64_t bands,
                         int64_t pixels, int64_t parts) {
    EXPECT_EQ(c.images, images);
    EXPECT_EQ(c.bands, bands);
    EXPECT_EQ(c.pixels, pixels);
    EXPECT_EQ(c.parts, parts);
  };
  expect(cut(128, 1, 3, 16, 3, 32), 1, 2, 512, 256);     // one tile: as many as have 512 pixels
  expect(cut(4, 1, 128, 256, 3, 56), 1, 2, 1568, 8);     // 4 x 18 tiles
  expect(cut(4, 2, 128, 256, 3, 56), 1, 4, 784, 16);     // 2 groups of 2 x 9
  expect(cut(64, 1, 512, 512, 3, 7), 64, 1, 49, 1);      // 8 x 72 tiles are enough
  expect(cut(1000, 1, 3, 16, 3, 32), 1, 1, 1024, 1000);  // 512 are wanted, an image is not cut
  expect(cut(2, 4, 8, 8, 1, 40), 1, 4, 400, 8);
  expect(cut(1, 1, 1, 1, 5, 17), 1, 1, 289, 1);  // nothing to cut
  expect(cut(0, 1, 3, 16, 3, 32), 1, 1, 1024, 0);
}

// For any shape: pieces hold every element, and none is empty. A cut makes no more than
// kNominalBlocks, and half of them where there is enough to do.
TEST(GpuCuts, PiecesOfAnyShape) {
  raw::Values values(3);
  for (int i = 0; i < 20000; ++i) {
    const auto up_to = [&](int64_t most) {  // small ones as often as large ones
      return static_cast<int64_t>(
          values.below(static_cast<uint64_t>(most >> values.below(20)) + 1));
    };
    const int64_t rows = up_to(1 << 24), columns = up_to(1 << 20);
    const bool first = values.below(2) == 0;
    const ReduceArgs a = planned(rows, columns, first, !first);
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns) + ", " +
                 (first ? "first" : "last"));
    if (a.segments > 1) {
      EXPECT_GE(a.segments * a.segment, a.count);
      EXPECT_LT((a.segments - 1) * a.segment, a.count);
      EXPECT_LE(reduce_gpu_tasks(a) * a.segments, kNominalBlocks);
      EXPECT_EQ(a.workspace_bytes, a.segments * a.outputs * kReducePartial);
      EXPECT_LE(a.workspace_bytes, kNominalBlocks * 32 * kReducePartial);
    } else {
      EXPECT_EQ(a.segment, a.count);
      EXPECT_EQ(a.workspace_bytes, 0);
    }
    const int64_t tasks = reduce_gpu_tasks(a), turn = a.columns ? kReduceGpuRows : 2048;
    if (a.count >= 8 * turn && a.count * tasks >= 4 * turn * kNominalBlocks) {
      EXPECT_GE(tasks * a.segments, kNominalBlocks / 2);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(GpuCuts, OtherSums) {
  EXPECT_EQ(dot_cut(1 << 20).pieces, 512);
  EXPECT_EQ(dot_cut(16383).pieces, 1);
  EXPECT_EQ(dot_workspace(16383), 0);
  EXPECT_EQ(dot_workspace(1 << 20), 8 * 512);

  // Running sums: a thread has a short line, or one of very many; a block, or several, another.
  EXPECT_TRUE(cumulative_sum_by_threads(64, 128, 1));
  EXPECT_FALSE(cumulative_sum_by_threads(64, 129, 1));
  EXPECT_FALSE(cumulative_sum_by_threads(1, 1000, 64)) << "64 threads would be all";
  EXPECT_TRUE(cumulative_sum_by_threads(1 << 17, 1000, 1));
  EXPECT_EQ(cumulative_sum_cut(1, 1 << 20, 1).pieces, 512);
  EXPECT_EQ(cumulative_sum_cut(64, 1 << 20, 1).pieces, 8);
  EXPECT_EQ(cumulative_sum_cut(1, 2047, 1).pieces, 1);
  EXPECT_EQ(cumulative_sum_workspace(64, 1 << 20, 1), 8 * 64 * 8);
  EXPECT_EQ(cumulative_sum_workspace(1, 2047, 1), 0);
}

// Parts of a channel's values, and whether the CPU's workspace holds the GPU's sums.
TEST(GpuCuts, BatchNorm) {
  const auto parts = [](int64_t n, int64_t c, int64_t l, bool inside) {
    const int64_t each = batch_norm_gpu_part(n, c, l, inside);
    return (n * l + each - 1) / each;
  };
  EXPECT_EQ(parts(256, 3, 224 * 224, true), 528) << "one tile of channels";
  EXPECT_EQ(parts(256, 64, 56 * 56, true), 264) << "two";
  EXPECT_EQ(parts(256, 64, 56 * 56, false), 256) << "small: they are read twice";
  EXPECT_EQ(parts(32, 512, 49, true), 4) << "512 values at least";
  for (int64_t c : {1, 2, 3, 31, 32, 33, 64, 100, 512, 5000})
    for (int64_t n : {1, 2, 37, 600, 5000})
      for (int64_t l : {1, 3, 49, 3136})
        for (bool inside : {false, true})
          EXPECT_GE(batch_norm_workspace(n, c, l), 8 * (2 * parts(n, c, l, inside) * c + 3 * c))
              << n << " x " << c << " x " << l;

  const auto rows = batch_norm_relu_pool_gpu_rows;
  EXPECT_EQ(rows(8, 32, 32), 1) << "128 blocks instead of 8";
  EXPECT_EQ(rows(8, 256, 32), 2);
  EXPECT_EQ(rows(512, 28, 64), 14) << "one part an image, as on the CPU";
  EXPECT_EQ(rows(1, 1, 32), 0);
  EXPECT_EQ(batch_norm_relu_pool_workspace(8, 32, 32, true),
            4 * (5 * (32 + 16) + 128 * 2 * 32 + 16));
}

IndexArgs indexing(const std::vector<int64_t>& sizes, const std::vector<int64_t>& steps) {
  IndexArgs a{};
  a.mode = IndexMode::kPut;
  a.indices = static_cast<int32_t>(sizes.size());
  for (size_t k = 0; k < sizes.size(); ++k) a.index_size[k] = sizes[k], a.index_step[k] = steps[k];
  return a;
}

TEST(GpuCuts, KeysOfTheRowsOfAnEmbedding) {
  const IndexKeys keys(indexing({50304}, {768}));
  EXPECT_EQ(keys.none, 50304u);
  EXPECT_EQ(sort_gpu_passes(keys.bits), 4) << "16 bits; places have 26, and took 8 passes";
  EXPECT_EQ(sort_gpu_passes(26), 8);
  EXPECT_EQ(sort_gpu_passes(64), 16);
  EXPECT_EQ(sort_gpu_passes(1), 2);
}

// Two tuples have the same key exactly where they have the same place. Keys are below `none`, which
// is the number of places, unless the steps of index tensors overlap.
TEST(GpuCuts, KeysAreEqualWherePlacesAre) {
  struct Case {
    std::vector<int64_t> sizes, steps;
    uint64_t none;
  };
  const std::vector<Case> cases = {{{7}, {5}, 7},
                                   {{7}, {0}, 1},  // expanded: one place
                                   {{4, 5}, {10, 2}, 20},
                                   {{4, 5}, {2, 8}, 20},  // transposed
                                   {{3, 4, 5}, {100, 5, 20}, 60},
                                   {{3, 1, 5}, {7, 3, 50}, 15},  // of one there is no step
                                   {{4, 4}, {1, 1}, 7},          // several tuples in one place
                                   {{3, 4}, {2, 3}, 14},
                                   {{1}, {9}, 1},
                                   {{}, {}, 1}};
  for (const auto& [sizes, steps, none] : cases) {
    IndexArgs a = indexing(sizes, steps);
    const IndexKeys by(a);
    int64_t tuples = 1;
    for (int64_t size : sizes) tuples *= size;
    std::map<int64_t, uint64_t> key_of;
    std::map<uint64_t, int64_t> place_of;
    for (int64_t i = 0; i < tuples; ++i) {
      std::vector<int64_t> at(sizes.size());
      int64_t rest = i;
      for (size_t k = 0; k < sizes.size(); ++k) {
        at[k] = rest % sizes[k], rest /= sizes[k];
        if (i % 2) at[k] -= sizes[k];  // from the end
        a.index[k] = &at[k];
      }
      const IndexTuple tuple;
      const int64_t place = tuple.place(a);
      const uint64_t key = by.of(a, tuple);
      EXPECT_LT(key, by.none);
      EXPECT_EQ(key_of.emplace(place, key).first->second, key) << place;
      EXPECT_EQ(place_of.emplace(key, place).first->second, place) << key;
    }
    EXPECT_EQ(key_of.size(), place_of.size());
    EXPECT_EQ(by.none, none);
    EXPECT_EQ(by.none >> by.bits, 0u);
    EXPECT_TRUE(by.bits == 1 || by.none >> (by.bits - 1) == 1) << by.bits << " bits";
    // Out of range: nowhere.
    if (sizes.empty()) continue;
    const int64_t far = sizes[0];
    a.index[0] = &far;
    EXPECT_EQ(by.of(a, IndexTuple()), by.none);
  }
}

}  // namespace
}  // namespace ramet::kernels
