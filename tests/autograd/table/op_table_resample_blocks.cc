// Rows of the operation table: channels as pixels and back, blocks as columns and back.
#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

void add_shuffles(Table& t) {
  // Each element of the result from where `from` says, of a result of these sizes.
  const auto moved = [](auto sizes, auto from) -> Reference {
    return [=](P x) {
      return made(sizes(x[0]), [&](const Index& i) { return x[0].at(from(i, x[0])); });
    };
  };
  t.row("pixel_shuffle", kAll, shapes({{2, 8, 2, 3}, {4, 1, 2}, {0, 4, 2, 2}}),
        CALL(pixel_shuffle, x[0], 2),
        moved(
            [](const Plain& x) {
              Index s = x.sizes;
              const size_t d = s.size() - 3;
              s[d] /= 4, s[d + 1] *= 2, s[d + 2] *= 2;
              return s;
            },
            [](Index i, const Plain&) {
              const size_t d = i.size() - 3;
              i[d] = i[d] * 4 + i[d + 1] % 2 * 2 + i[d + 2] % 2;
              i[d + 1] /= 2, i[d + 2] /= 2;
              return i;
            }))
      .big({real({70, 8, 7, 9})}, 1)
      .writes(OUT(pixel_shuffle, x[0], 2));
  t.row("pixel_unshuffle", kAll, shapes({{2, 2, 3, 6}, {2, 6, 3}, {0, 1, 3, 3}}),
        CALL(pixel_unshuffle, x[0], 3),
        moved(
            [](const Plain& x) {
              Index s = x.sizes;
              const size_t d = s.size() - 3;
              s[d] *= 9, s[d + 1] /= 3, s[d + 2] /= 3;
              return s;
            },
            [](Index i, const Plain&) {
              const size_t d = i.size() - 3;
              i[d + 1] = i[d + 1] * 3 + i[d] / 3 % 3, i[d + 2] = i[d + 2] * 3 + i[d] % 3;
              i[d] /= 9;
              return i;
            }))
      .big({real({70, 3, 9, 12})}, 1)
      .writes(OUT(pixel_unshuffle, x[0], 3));
  const Reference by_groups = moved([](const Plain& x) { return x.sizes; },
                                    [](Index i, const Plain& x) {
                                      i[1] = i[1] % 2 * (x.size(1) / 2) + i[1] / 2;
                                      return i;
                                    });
  const Samples grouped = shapes({{2, 6, 3}, {2, 4, 1, 2}, {0, 2, 3}, {2, 0, 3}});
  t.row("channel_shuffle", kAll, grouped, CALL_OUT(channel_shuffle, x[0], 2), by_groups)
      .big({real({70, 6, 90})}, 1);
  t.row("native_channel_shuffle", kAll, grouped, CALL(native_channel_shuffle, x[0], 2), by_groups)
      .big({real({70, 6, 90})}, 1);
}

struct Blocks {
  int64_t kernel[2], dilation[2], padding[2], stride[2];
  int64_t count(int64_t in, int d) const {
    return (in + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
  }
  int64_t place(int64_t block, int64_t tap, int d) const {
    return block * stride[d] - padding[d] + tap * dilation[d];
  }
};
// f(channel, block, row and column of the image, row of the columns), which may lie outside.
template <class F> void each_element(const Blocks& b, int64_t c, int64_t h, int64_t w, F f) {
  const int64_t down = b.count(h, 0), across = b.count(w, 1);
  for (int64_t r = 0; r < c * b.kernel[0] * b.kernel[1]; ++r)
    for (int64_t o = 0; o < down * across; ++o)
      f(r / b.kernel[1] / b.kernel[0], o, b.place(o / across, r / b.kernel[1] % b.kernel[0], 0),
        b.place(o % across, r % b.kernel[1], 1), r);
}

void add_blocks(Table& t) {
  constexpr uint16_t kTypes = kFloats | kTruth;
  const Blocks apart = {{2, 3}, {1, 2}, {1, 2}, {2, 1}}, tiles = {{2, 3}, {1, 1}, {0, 0}, {2, 4}};
  const auto columns = [](const Blocks& b) -> Reference {
    return [=](P in) {
      const Plain& x = in[0];
      const int64_t c = x.size(-3), h = x.size(-2), w = x.size(-1);
      Index sizes = {c * b.kernel[0] * b.kernel[1], b.count(h, 0) * b.count(w, 1)};
      if (x.rank() == 4) sizes.insert(sizes.begin(), x.size(0));
      Plain y{sizes, {}};
      for (int64_t n = 0; n < (x.rank() == 4 ? x.size(0) : 1); ++n)
        each_element(b, c, h, w, [&](int64_t k, int64_t, int64_t i, int64_t j, int64_t) {
          const bool inside = i >= 0 && i < h && j >= 0 && j < w;
          y.v.push_back(inside ? x.v[size_t(((n * c + k) * h + i) * w + j)] : 0);
        });
      return y;
    };
  };
  const auto image = [](const Blocks& b, int64_t h, int64_t w) -> Reference {
    return [=](P in) {
      const Plain& x = in[0];
      const int64_t c = x.size(-2) / b.kernel[0] / b.kernel[1];
      Index sizes = {c, h, w};
      if (x.rank() == 3) sizes.insert(sizes.begin(), x.size(0));
      Plain y = made(sizes, [](const Index&) { return 0; });
      size_t next = 0;
      for (int64_t n = 0; n < (x.rank() == 3 ? x.size(0) : 1); ++n)
        each_element(b, c, h, w, [&](int64_t k, int64_t, int64_t i, int64_t j, int64_t) {
          const bool inside = i >= 0 && i < h && j >= 0 && j < w;
          if (inside) y.v[size_t(((n * c + k) * h + i) * w + j)] += x.v[next];
          ++next;
        });
      return y;
    };
  };
  t.row("im2col", kTypes, shapes({{2, 2, 4, 5}, {2, 3, 4}, {0, 2, 3, 4}}),
        CALL_OUT(im2col, x[0], {2, 3}, {1, 2}, {1, 2}, {2, 1}), columns(apart))
      .big({real({70, 3, 9, 8})}, 1);
  t.row("im2col.tiles", kTypes, shapes({{2, 2, 4, 7}, {2, 2, 3}, {0, 2, 3, 4}}),
        CALL(im2col, x[0], {2, 3}, {1, 1}, {0, 0}, {2, 4}), columns(tiles))
      .big({real({70, 6, 9, 12})}, 1);
  // 3 x 4 blocks of 5 x 4, and 2 x 2 of 5 x 8.
  t.row("col2im", kFloats, shapes({{2, 12, 12}, {6, 12}, {0, 12, 12}}),
        CALL_OUT(col2im, x[0], {5, 4}, {2, 3}, {1, 2}, {1, 2}, {2, 1}), image(apart, 5, 4))
      .also(kTruth)
      .only(kFloats)
      .big({real({1200, 18, 12})}, 1);
  t.row("col2im.tiles", kFloats, shapes({{2, 12, 4}, {6, 4}, {0, 12, 4}}),
        CALL(col2im, x[0], {5, 8}, {2, 3}, {1, 1}, {0, 0}, {2, 4}), image(tiles, 5, 8))
      .also(kTruth)
      .only(kFloats)
      .big({real({370, 18, 4})}, 1);
}

RAMET_OP_TABLE(add_shuffles, add_blocks);

}  // namespace
}  // namespace op_table
}  // namespace ramet
