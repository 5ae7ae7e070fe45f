// Pointwise kernels on any strides, and how dimensions are merged for them.
#include "kernels/copy/coalesce.h"
#include "kernels/pointwise/pointwise.h"
#include "tests/kernels/pointwise/pointwise_reference.h"
#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using namespace pointwise_reference;
using raw::Buffer;
using raw::Values;

TEST(Pointwise, StridesBroadcastsAndMixedTypesAgreeWithALoop) {
  Values v(77);
  const ScalarType kTypes[] = {kFloat, kDouble, kInt, kBool, kHalf};
  for (int round = 0; round < 300; ++round) {
    const Op& op = op_named(
        std::vector<const char*>{"sub", "where", "lt", "neg"}[static_cast<size_t>(v.below(4))]);
    const int rank = static_cast<int>(v.below(5));
    int64_t sizes[kMaxTensorRank], strides[4][kMaxTensorRank], extent[4] = {1, 1, 1, 1};
    for (int d = 0; d < rank; ++d) sizes[d] = v.below(8) == 0 ? 40 : 1 + v.below(5);
    ScalarType types[4];
    for (int o = 0; o < 4; ++o) types[o] = kTypes[v.below(5)];
    const ScalarType compute =
        compute_type(promote_types(types[2], promote_types(types[1], types[3])));
    if (is_integral(types[0])) types[0] = compute == kLong ? kLong : compute;
    // broadcast dimensions of operands only
    for (int o = 0; o < 4; ++o) extent[o] = raw::random_strides(v, rank, sizes, o > 0, strides[o]);
    std::vector<Buffer> data;
    for (int o = 0; o < 4; ++o) data.emplace_back(extent[o], types[o]), data.back().fill(v, 4);
    Buffer want = data[0];

    // The loop: exact operands as doubles, in float where the compute type is float.
    const R s = 2;
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= sizes[d];
    for (int64_t i = 0; i < count; ++i) {
      int64_t at[4];
      for (int o = 0; o < 4; ++o) at[o] = raw::offset_of(i, rank, sizes, strides[o]);
      R y = references().at(op.name).f(data[1][at[1]], data[2][at[2]], data[3][at[3]], s, 0);
      if (compute == kFloat && !op.truth) y = static_cast<float>(y);
      if (compute == kLong) y = static_cast<R>(static_cast<int64_t>(y));  // no negative zero
      want.set(at[0], static_cast<double>(y));
    }

    PointwiseStridedArgs k{};
    k.rank = rank, k.compute = compute;
    if (compute == kLong) k.s.i = 2;
    else k.s.d = 2;
    if (v.below(2)) k.rank = coalesce<4>(rank, sizes, strides);
    for (int o = 0; o < 4; ++o) {
      k.data[o] = data[static_cast<size_t>(o)].data(), k.type[o] = types[o];
      for (int d = 0; d < k.rank; ++d) k.sizes[d] = sizes[d], k.strides[o][d] = strides[o][d];
    }
    (*op.strided)(raw::kCpuStream, k);
    ASSERT_TRUE(data[0].guards_intact());
    for (int64_t i = 0; i < want.size; ++i)
      ASSERT_EQ(data[0][i], want[i])
          << op.name << ", round " << round << ", rank " << rank << ", element " << i << ", types "
          << types[0] << ' ' << types[1] << ' ' << types[2] << ' ' << types[3];
  }
}

TEST(Pointwise, StridedResultsDoNotDependOnThreads) {
  Buffer a(300 * 90, kFloat), b(300, kFloat), out(300 * 90, kFloat);
  Values v(1);
  a.fill(v), b.fill(v);
  raw::expect_same_bits(out, [&](Buffer& y) {  // out[i][j] = a[j][i] / b[i]
    PointwiseStridedArgs k{};
    k.data[0] = y.data(), k.data[1] = a.data(), k.data[2] = b.data();
    for (auto& t : k.type) t = kFloat;
    k.compute = kFloat, k.rank = 2, k.sizes[0] = 300, k.sizes[1] = 90;
    k.strides[0][0] = 90, k.strides[0][1] = 1, k.strides[1][0] = 1, k.strides[1][1] = 300,
    k.strides[2][0] = 1, k.strides[2][1] = 0;
    div_strided(raw::kCpuStream, k);
  });
  for (int64_t i = 0; i < 300; ++i)
    for (int64_t j = 0; j < 90; ++j)
      ASSERT_EQ(out[i * 90 + j], static_cast<float>(a[j * 300 + i]) / static_cast<float>(b[i]));
}

TEST(Coalesce, MergesReordersAndDropsDimensions) {
  int64_t sizes[kMaxTensorRank] = {2, 1, 3, 4},
          strides[2][kMaxTensorRank] = {{12, 7, 4, 1}, {12, 9, 4, 1}};
  EXPECT_EQ(coalesce<2>(4, sizes, strides), 1);
  EXPECT_EQ(sizes[0], 24);
  // both transposed: one run
  int64_t t_sizes[kMaxTensorRank] = {3, 4}, t_strides[2][kMaxTensorRank] = {{1, 3}, {1, 3}};
  EXPECT_EQ(coalesce<2>(2, t_sizes, t_strides), 1);
  EXPECT_EQ(t_sizes[0], 12);
  EXPECT_EQ(t_strides[0][0], 1);
  int64_t b_sizes[kMaxTensorRank] = {5, 4}, b_strides[2][kMaxTensorRank] = {{4, 1}, {0, 1}};
  EXPECT_EQ(coalesce<2>(2, b_sizes, b_strides), 2);
  int64_t one[kMaxTensorRank] = {1, 1}, one_strides[2][kMaxTensorRank] = {{1, 1}, {0, 0}};
  EXPECT_EQ(coalesce<2>(2, one, one_strides), 0);
}

}  // namespace
}  // namespace ramet::kernels
