// Rows of the operation table: copies, and borders around them.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

void add_copies(Table& t) {
  const Sample large = {real({140, 131}, -9, 9)};
  // A block of src's sizes from the second element on.
  t.row(
       "as_strided_scatter", kAll,
       {{real({3, 4}), real({2, 3})}, {real({0, 4}), real({0, 3})}, {real({}), real({})}},
       [](V x) {
         const Tensor in = x[0].contiguous();
         const Index strides = in.dim() ? Index{in.size(1), 1} : Index{};
         return as_strided_scatter(in, x[1], x[1].sizes(), strides,
                                   in.storage_offset() + (in.numel() > 1));
       },
       [](P x) {
         Plain out = x[0];
         for (size_t k = 0; k < x[1].v.size(); ++k) {
           const auto columns = static_cast<size_t>(x[1].rank() ? x[1].size(1) : 1),
                      width = static_cast<size_t>(x[0].rank() ? x[0].size(1) : 1);
           out.v[k / columns * width + k % columns + (x[0].rank() ? 1 : 0)] = x[1].v[k];
         }
         return out;
       })
      .big({real({140, 131}), real({100, 120})})
      .in_one("a place in memory moves with the slice");
  t.row("sum_to_size", kAll, shapes({{2, 3, 4}, {0, 3, 4}, {1, 3, 1}}, -9, 9),
        EXPRESSION(x[0].sum_to_size({3, 1})),
        [](P x) {
          Plain out = made({3, 1}, [](const Index&) { return 0; });
          made(x[0].sizes,
               [&](const Index& i) { return out.v[static_cast<size_t>(i[1])] += x[0].at(i); });
          return out;
        })
      .gives(widened)
      .within(4)
      .big({real({70, 3, 131})})
      .in_one("all lines are one sum");
  const auto row = [&](const char* name, const std::vector<Index>& sizes, Calls call,
                       Reference reference) -> Row& {
    return t.row(name, kAll, shapes(sizes, -9, 9), std::move(call), std::move(reference))
        .big(large);
  };
  row("clone", {{3, 4}, {0, 2}, {}}, CALL(clone, x[0]), as([](const Plain& x) { return x.sizes; }))
      .sliced({0}, 0);
  row("flip", {{3, 4}, {0, 2}, {2, 3, 1}}, CALL(flip, x[0], {1}),
      moved([](const Plain& x) { return x.sizes; },
            [](const Index& i, const Plain& x) {
              Index from = i;
              from[1] = x.size(1) - 1 - i[1];
              return from;
            }))
      .sliced({0}, 0);
  row("constant_pad_nd", {{3, 4}, {0, 2}, {2, 3, 1}, {}},
      CALL(constant_pad_nd, x[0], x[0].dim() ? Index{2, -1, 0, 1} : Index{}, 1),
      [](P x) {
        Index sizes = x[0].sizes;
        if (sizes.empty()) return x[0];
        sizes[sizes.size() - 1] += 1, sizes[sizes.size() - 2] += 1;
        return made(sizes, [&](Index i) {
          int64_t& column = i[i.size() - 1];
          column -= 2;
          const bool inside = column >= 0 && i[i.size() - 2] < x[0].size(-2);
          return inside ? x[0].at(i) : 1;
        });
      })
      .in_one("the last rows are constants");
  // Where number i of a line of n comes from.
  static const auto bordered = [](int64_t (*from)(int64_t i, int64_t n)) {
    return [from](P x) {
      Index sizes = x[0].sizes;
      sizes.back() += 3;
      return made(sizes, [&](Index i) {
        i.back() = from(i.back() - 1, x[0].size(-1));
        return x[0].at(i);
      });
    };
  };
  row("pad.reflect", {{2, 4}, {0, 3}, {2, 3, 5}}, CALL(pad, x[0], {1, 2}, "reflect"),
      bordered([](int64_t i, int64_t n) { return i < 0   ? -i
                                                 : i < n ? i
                                                         : 2 * (n - 1) - i; }))
      .not_scalar("refused: nothing to mirror")
      .sliced({0}, 0);
  row("pad.replicate", {{2, 4}, {0, 3}, {2, 3, 1}}, CALL(pad, x[0], {1, 2}, "replicate"),
      bordered([](int64_t i, int64_t n) { return std::clamp<int64_t>(i, 0, n - 1); }))
      .not_scalar("refused: nothing to repeat")
      .sliced({0}, 0);
  row("pad.circular", {{2, 4}, {0, 3}, {2, 3, 2}}, CALL(pad, x[0], {1, 2}, "circular"),
      bordered([](int64_t i, int64_t n) { return (i + n) % n; }))
      .not_scalar("refused: nothing to repeat")
      .sliced({0}, 0);
  row("repeat", {{2, 3}, {0, 3}, {3, 1}, {}}, CALL(repeat, x[0], {2, 1, 3}),
      moved(
          [](const Plain& x) {
            return x.rank() ? Index{2, x.size(0), 3 * x.size(1)} : Index{2, 1, 3};
          },
          [](const Index& i, const Plain& x) {
            return x.rank() ? Index{i[1], i[2] % x.size(1)} : Index{};
          }))
      .sliced({0}, 1);
}

// Borders that come from what is inside: the reference moves each index by itself.
void add_borders(Table& t) {
  struct Pad {
    const char* name;
    size_t dims;
    Tensor (*pad)(const Tensor&, IntArrayRef);
    Tensor (*out)(Tensor&, V, IntArrayRef);
    std::vector<Index> sizes;
    Index large;
  };
  const auto add = [&t](const Pad& p, int64_t (*from)(int64_t i, int64_t n)) {
    Index sides;  // 1, 2, 0, 1, 1, 0
    for (size_t d = 0; d < p.dims; ++d) sides.push_back(d != 1), sides.push_back((2 * d + 2) % 3);
    t.row(p.name, kNumbers, shapes(p.sizes, -9, 9), EXPRESSION(p.pad(x[0], sides)),
          [=](P x) {
            Index sizes = x[0].sizes;
            for (size_t d = 0; d < p.dims; ++d)
              sizes[sizes.size() - 1 - d] += sides[2 * d] + sides[2 * d + 1];
            return made(sizes, [&](Index i) {
              for (size_t d = 0; d < p.dims; ++d) {
                const size_t at = i.size() - 1 - d;
                i[at] = from(i[at] - sides[2 * d], x[0].sizes[at]);
              }
              return x[0].at(i);
            });
          })
        .big({real(p.large, -9, 9)}, 1)
        .also(kTruth)
        .writes([=](Tensor& o, V x) { return p.out(o, x, sides); });
  };
  const std::vector<Index> lines = {{2, 4}, {0, 3}, {2, 3, 5}},
                           planes = {{2, 3, 4}, {0, 2, 3}, {2, 1, 2, 4}},
                           volumes = {{2, 2, 3, 4}, {0, 2, 2, 3}, {1, 2, 2, 2, 4}};
  const auto mirror = [](int64_t i, int64_t n) { return i < 0 ? -i : i < n ? i : 2 * (n - 1) - i; };
  const auto edge = [](int64_t i, int64_t n) { return std::clamp<int64_t>(i, 0, n - 1); };
  const Index line = {140, 131}, plane = {140, 9, 15}, volume = {140, 4, 5, 7};
#define BORDERS(name, dims, sizes, large, from)                                                 \
  add({#name, dims, name, [](Tensor& o, V x, IntArrayRef p) { return name##_out(o, x[0], p); }, \
       sizes, large},                                                                           \
      from)
  BORDERS(reflection_pad1d, 1, lines, line, mirror);
  BORDERS(reflection_pad2d, 2, planes, plane, mirror);
  BORDERS(reflection_pad3d, 3, volumes, volume, mirror);
  BORDERS(replication_pad1d, 1, lines, line, edge);
  BORDERS(replication_pad2d, 2, planes, plane, edge);
  BORDERS(replication_pad3d, 3, volumes, volume, edge);
#undef BORDERS
  const auto sequences = [&t](const char* name, bool batch_first, const char* side) {
    t.row(name, kAll,
          {{real({3, 2}, -9, 9), real({1, 2}, -9, 9), real({2, 2}, -9, 9)},
           {real({2}, -9, 9), real({0}, -9, 9), real({3}, -9, 9)}},
          CALL(pad_sequence, x, batch_first, 1, side),
          [=](P x) {
            Index sizes = x[0].sizes;
            for (const Plain& p : x) sizes[0] = std::max(sizes[0], p.size(0));
            const int64_t longest = sizes[0];
            sizes.insert(batch_first ? sizes.begin() : sizes.begin() + 1, int64_t(x.size()));
            return made(sizes, [&](Index i) {
              const Plain& p = x[size_t(i[batch_first ? 0 : 1])];
              i.erase(i.begin() + (batch_first ? 0 : 1));
              if (side[0] == 'l') i[0] -= longest - p.size(0);
              return i[0] >= 0 && i[0] < p.size(0) ? p.at(i) : 1;
            });
          })
        .big({real({300, 131}, -9, 9), real({200, 131}, -9, 9)})
        .sliced({1, 1}, 2)
        .not_scalar("refused: a number has no length");
  };
  sequences("pad_sequence", false, "right");
  sequences("pad_sequence.left", true, "left");
}

RAMET_OP_TABLE(add_copies, add_borders);

}  // namespace
}  // namespace op_table
}  // namespace ramet
