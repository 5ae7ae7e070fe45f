// Rows of the operation table: views.

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

void add_views(Table& t) {
  const auto row = [&t](const char* name, const std::vector<Index>& sizes, Calls call,
                        Reference reference) -> Row& {
    return t.row(name, kAll, shapes(sizes, -9, 9), std::move(call), std::move(reference))
        .moves_nothing();
  };
  const std::vector<Index> some = {{4, 6}, {0, 6}, {2, 6, 1}};
  const auto transposed = moved(
      [](const Plain& x) {
        return x.rank() ? Index{x.size(1), x.size(0)} : Index{};
      },
      [](const Index& i, const Plain&) {
        return i.empty() ? i : Index{i[1], i[0]};
      });
  row("transpose", {{3, 4}, {0, 4}, {}}, CALL(transpose, x[0], 0, -1), transposed);
  row("swapaxes", {{3, 4}, {0, 4}, {}}, CALL(swapaxes, x[0], 0, -1), transposed);
  row("swapdims", {{3, 4}, {0, 4}, {}}, EXPRESSION(x[0].swapdims(-1, 0)), transposed);
  row("t", {{3, 4}, {0, 4}, {}}, EXPRESSION(ramet::t(x[0])), transposed);
  row("permute", {{2, 3, 4}, {2, 0, 4}}, CALL(permute, x[0], {2, 0, 1}),
      moved(SIZES(x.size(2), x.size(0), x.size(1)), FROM(i[1], i[2], i[0])));
  row("movedim", {{2, 3, 4}, {2, 0, 4}, {}}, CALL(movedim, x[0], 0, -1),
      moved(
          [](const Plain& x) {
            return x.rank() ? Index{x.size(1), x.size(2), x.size(0)} : Index{};
          },
          [](const Index& i, const Plain&) {
            return i.empty() ? i : Index{i[2], i[0], i[1]};
          }));
  row("moveaxis", {{2, 3, 4}, {2, 0, 4}, {}}, CALL(moveaxis, x[0], 0, -1),
      moved(
          [](const Plain& x) {
            return x.rank() ? Index{x.size(1), x.size(2), x.size(0)} : Index{};
          },
          [](const Index& i, const Plain&) {
            return i.empty() ? i : Index{i[2], i[0], i[1]};
          }));
  // A view's strides are limited: `view` itself is asked of contiguous inputs only.
  row("view", some, CALL(view, x[0].contiguous(), {-1, 3}), as(SIZES(count(x.sizes) / 3, 3)));
  row("reshape", some, CALL(reshape, x[0], {-1, 3}), as(SIZES(count(x.sizes) / 3, 3)));
  row("flatten", {{3, 4}, {2, 3, 4}, {0, 2}, {}}, CALL(flatten, x[0]), as(SIZES(count(x.sizes))));
  row("flatten.some", {{2, 3, 4, 2}, {2, 0, 4, 1}}, CALL(flatten, x[0], 1, 2),
      as(SIZES(x.size(0), x.size(1) * x.size(2), x.size(3))));
  row("ravel", {{3, 4}, {2, 3, 4}, {0, 2}, {}}, CALL(ravel, x[0]), as(SIZES(count(x.sizes))));
  const auto last_two_swapped = moved(
      [](const Plain& x) {
        Index sizes = x.sizes;
        if (x.rank()) std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
        return sizes;
      },
      [](const Index& i, const Plain& x) {
        Index from = i;
        if (x.rank()) std::swap(from[from.size() - 1], from[from.size() - 2]);
        return from;
      });
  const std::vector<Index> matrices = {{2, 3, 4}, {3, 4}, {0, 4}, {}};
  row("mT", matrices, EXPRESSION(x[0].mT()), last_two_swapped);
  row("mH", matrices, EXPRESSION(x[0].mH()), last_two_swapped);
  row("adjoint", matrices, CALL(adjoint, x[0]), last_two_swapped);
  row("numpy_T", {{2, 3, 4}, {0, 4}, {}}, EXPRESSION(x[0].numpy_T()),
      moved([](const Plain& x) { return Index(x.sizes.rbegin(), x.sizes.rend()); },
            [](const Index& i, const Plain&) { return Index(i.rbegin(), i.rend()); }));
  // Strides are those of the storage: asked of contiguous inputs only, as `view` is.
  row(
      "as_strided", {{3, 4}, {5}, {0, 4}, {}},  // three neighbours each, from the second element on
      [](V x) {
        const Tensor in = x[0].contiguous();
        return as_strided(in, {std::max<int64_t>(in.numel() - 3, 0), 3}, {1, 1},
                          in.storage_offset() + (in.numel() > 3));
      },
      [](P x) {
        return made({std::max<int64_t>(count(x[0].sizes) - 3, 0), 3},
                    [&](const Index& i) { return x[0].v[static_cast<size_t>(1 + i[0] + i[1])]; });
      });
  row("as_strided.repeated", {{}, {2, 2}}, CALL(as_strided, x[0].contiguous(), {2, 3}, {0, 0}),
      moved(SIZES(2, 3), [](const Index&, const Plain& x) { return Index(size_t(x.rank()), 0); }))
      .not_empty("refused: there is no element");
  row("unflatten", some, CALL(unflatten, x[0], 1, {2, -1}), as([](const Plain& x) {
        Index sizes = x.sizes;
        sizes[1] = 3;
        sizes.insert(sizes.begin() + 1, 2);
        return sizes;
      }));
  row("squeeze", {{1, 3, 1}, {1}, {0, 1}, {}}, CALL(squeeze, x[0]), as([](const Plain& x) {
        Index sizes;
        for (int64_t s : x.sizes)
          if (s != 1) sizes.push_back(s);
        return sizes;
      }));
  row("squeeze.dim", {{3, 1, 4}, {0, 1, 1}}, CALL(squeeze, x[0], 1),
      as(SIZES(x.size(0), x.size(2))));
  row("unsqueeze", {{3, 4}, {0, 2}}, CALL(unsqueeze, x[0], 1), as(SIZES(x.size(0), 1, x.size(1))));
  row("unsqueeze.last", {{}, {3}, {0}}, CALL(unsqueeze, x[0], -1), as([](const Plain& x) {
        return x.rank() ? Index{x.size(0), 1} : Index{1};
      }));
  row("expand", {{3, 1}, {1, 1}, {0, 1}}, CALL(expand, x[0], {2, -1, 4}),
      moved(SIZES(2, x.size(0), 4), FROM(i[1], 0)));
  row("expand.scalar", {{}, {1}}, CALL(expand, x[0], {2, 3}),
      moved(SIZES(2, 3), [](const Index&, const Plain& x) { return Index(size_t(x.rank()), 0); }))
      .not_empty("refused: an extent of 0 does not expand");
  row("broadcast_to", {{3, 1}, {0, 1}}, CALL(broadcast_to, x[0], {2, -1, 4}),
      moved(SIZES(2, x.size(0), 4), FROM(i[1], 0)))
      .not_scalar("refused: -1 is a dimension that is there");
  row("broadcast_tensors", {{3, 1}, {1}, {}, {0, 1}},
      EXPRESSION(broadcast_tensors({x[0], zeros({2, 1, 4})})[0]), [](P x) {
        return made(common(x[0].sizes, {2, 1, 4}),
                    [&](const Index& i) { return x[0].broadcast(i); });
      });
  t.row("expand.copy", kAll,
        {{real({2, 3}, -9, 9), real({3}, -9, 9)}, {real({0, 3}), real({1})}, {real({}), real({})}},
        EXPRESSION(expand(x[1], x[0].sizes()).clone()),
        [](P x) { return made(x[0].sizes, [&](const Index& i) { return x[1].broadcast(i); }); })
      .big({real({300, 131}, -9, 9), real({131}, -9, 9)}, 1)
      .changes(EXPRESSION(x[0].copy_(x[1])));
  row("narrow", {{3, 4}, {0, 4}}, CALL(narrow, x[0], 1, 1, 2),
      moved(SIZES(x.size(0), 2), FROM(i[0], i[1] + 1)));
  row("select", {{3, 4}, {3, 0}}, CALL(select, x[0], 0, -1),
      moved(SIZES(x.size(1)), FROM(x.size(0) - 1, i[0])));
  row("select.vector", {{3}}, CALL(select, x[0], 0, 1), moved(SIZES(), FROM(1)))
      .not_empty("refused: nothing to choose from");
  row("slice", {{3, 6}, {0, 5}}, CALL(slice, x[0], 1, 1, -1, 2),
      moved(SIZES(x.size(0), (x.size(1) - 1) / 2), FROM(i[0], 1 + 2 * i[1])));
  row("unfold", {{7, 3}, {4, 0}}, EXPRESSION(x[0].unfold(0, 3, 2)),
      moved(SIZES((x.size(0) - 3) / 2 + 1, x.size(1), 3), FROM(2 * i[0] + i[2], i[1])));
  row("diagonal", {{3, 4}, {4, 3}, {0, 3}}, CALL(diagonal, x[0], 1),
      moved(SIZES(std::min(x.size(0), x.size(1) - 1)), FROM(i[0], i[0] + 1)));
  row("unbind", {{3, 4}, {3, 0}}, EXPRESSION(unbind(x[0], 0)[1]),
      moved(SIZES(x.size(1)), FROM(1, i[0])));
  row("split", {{5, 2}, {4, 0}}, EXPRESSION(split(x[0], 2)[1]),
      moved(SIZES(2, x.size(1)), FROM(i[0] + 2, i[1])));
  row("split.last", {{5, 2}, {7, 1}, {5, 0}}, EXPRESSION(split(x[0], 2).back()),
      moved(SIZES(1, x.size(1)), FROM(x.size(0) - 1, i[1])));
  row("split.sizes", {{2, 5}, {0, 5}}, EXPRESSION(split(x[0], {1, 4}, 1)[1]),
      moved(SIZES(x.size(0), 4), FROM(i[0], i[1] + 1)));
  row("split_with_sizes", {{2, 5}, {0, 5}}, EXPRESSION(split_with_sizes(x[0], {3, 0, 2}, 1)[2]),
      moved(SIZES(x.size(0), 2), FROM(i[0], i[1] + 3)));
  row("chunk", {{5, 2}, {6, 0}}, EXPRESSION(chunk(x[0], 2)[1]),
      moved(SIZES(x.size(0) / 2, x.size(1)), FROM(i[0] + (x.size(0) + 1) / 2, i[1])));
}

// In-place forms that change what a tensor views, not what it holds.
TEST(ShapeRows, InPlaceViews) {
  const Operands o = operands({real({3, 1, 4})}, kFloat);
  const auto check = [&](const Tensor& want, const std::function<Tensor(const Tensor&)>& change) {
    const Tensor x = o.tensors[0].clone();
    const Tensor y = change(x);
    EXPECT_EQ(y.impl(), x.impl());
    EXPECT_EQ(x.sizes().vec(), want.sizes().vec());
    EXPECT_TRUE(bits(x) == bits(want));
  };
  const Tensor& x = o.tensors[0];
  check(squeeze(x), [](const Tensor& v) { return v.squeeze_(); });
  check(squeeze(x, 1), [](const Tensor& v) { return v.squeeze_(1); });
  check(unsqueeze(x, 2), [](const Tensor& v) { return v.unsqueeze_(2); });
  check(transpose(x, 0, 2), [](const Tensor& v) { return v.transpose_(0, 2); });
  check(transpose(x, 0, 1), [](const Tensor& v) { return v.swapaxes_(1, 0); });
  check(transpose(x, 1, 2), [](const Tensor& v) { return v.swapdims_(-1, -2); });
  check(x.squeeze().t(), [](const Tensor& v) { return v.squeeze_().t_(); });
  check(as_strided(x, {2, 3}, {1, 2}, 1), [](const Tensor& v) {
    return v.as_strided_({2, 3}, {1, 2}, 1);
  });
  check(as_strided(x, {2}, {3}), [](const Tensor& v) { return as_strided_(v, {2}, {3}); });
}

TEST(ShapeRows, ResizeKeepsWhatFits) {
  const Tensor x = operands({real({2, 3})}, kFloat).tensors[0];
  const Plain old = plain_of(x);
  x.resize_({2, 2});
  expect_close(x, Plain{{2, 2}, {old.v[0], old.v[1], old.v[2], old.v[3]}});
  x.resize_({5});
  EXPECT_EQ(plain_of(x).v[3], old.v[3]);
  EXPECT_THROW(ones({2}).requires_grad_().resize_({3}), Error);
}
TEST(ShapeRows, ResizeAsAndSet) {
  const Tensor x = operands({real({2, 3})}, kFloat).tensors[0], y = x.clone();
  const Plain old = plain_of(x);
  EXPECT_EQ(resize_as_(y, zeros({3, 2})).impl(), y.impl());
  expect_close(y, Plain{{3, 2}, old.v});
  EXPECT_FALSE(y.is_set_to(x));
  EXPECT_EQ(y.set_(x).impl(), y.impl());
  EXPECT_TRUE(y.is_set_to(x) && y.is_alias_of(x) && y.is_same_size(x) && is_same_size(x, y));
  y.set_(x, 1, {2, 2}, {1, 2});
  expect_close(y, Plain{{2, 2}, {old.v[1], old.v[3], old.v[2], old.v[4]}});
  EXPECT_FALSE(y.is_set_to(x) || is_same_size(x, y));
  y.set_(x, 2, {3});
  expect_close(y, Plain{{3}, {old.v[2], old.v[3], old.v[4]}});
  EXPECT_EQ(y.set_().sizes().vec(), Index{0});
  EXPECT_THROW(y.set_(zeros({2}, kLong)), Error);
  EXPECT_THROW(y.set_(x, 2, {5}), Error);
  EXPECT_THROW(y.set_(ones({2}).requires_grad_()), Error);
  EXPECT_THROW(ones({2}).requires_grad_().mul(2).set_(x), Error);
}
TEST(ShapeRows, DetachCutsTheHistory) {
  const Tensor x = ones({2}).requires_grad_();
  const Tensor y = x.mul(2);
  y.detach_();
  EXPECT_FALSE(y.requires_grad());
  expect_close(y, Plain{{2}, {2, 2}});
  EXPECT_THROW(x.mul(2).select(0, 0).detach_(), Error) << "a view";
  Tensor z = x.mul(2);
  EXPECT_FALSE(detach(z).requires_grad());
  EXPECT_TRUE(z.requires_grad());
  EXPECT_FALSE(detach_(z).requires_grad());
}

RAMET_OP_TABLE(add_views);

}  // namespace
}  // namespace op_table
}  // namespace ramet
