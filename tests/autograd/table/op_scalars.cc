#include <gtest/gtest.h>

#include <iostream>

#include "tests/autograd/table/op_checks.h"

namespace ramet {
namespace op_table {
namespace {

// The operands with the sizes of `first`: of a 0-dim one, its value repeated.
std::vector<Plain> repeated(const Sample& first, P in) {
  std::vector<Plain> out = in;
  for (size_t k = 0; k < in.size(); ++k)
    if (in[k].sizes.empty())
      out[k] = made(first[k].sizes, [&in, k](const Index&) { return in[k].v[0]; });
  return out;
}
// `first` with 0-dim operands in `places`; empty where one of them is 0-dim already. An index keeps
// its sizes: a 0-dim one names one element once.
Sample with_scalars_in(const Sample& first, uint32_t places) {
  Sample sample = first;
  for (size_t k = 0; k < sample.size(); ++k) {
    if (!(places >> k & 1)) continue;
    const Kind kind = sample[k].kind;
    if (sample[k].sizes.empty() || kind == Kind::kIndex || kind == Kind::kDistinct) return {};
    sample[k].sizes = {};
  }
  return sample;
}
// Does the row take it, and as repeated values?
bool repeats(const Row& row, const Sample& sample) {
  const Operands o = operands(sample, row.own_type());
  Tensor y;
  try {
    y = row.call(o.tensors);
  } catch (const Error&) { return false; }
  if (y.sizes().vec() == expected(row, o.plain).sizes) return true;
  std::cout << "exception: " << row.name << ": a 0-dim operand gives another shape:"
            << text_of(sample) << "\n";
  return false;
}
// The row with such samples, and a reference of them.
Row with_scalars(const Row& row) {
  Row r = row;
  const Sample& first = row.samples.front();
  r.samples.clear();
  if (!row.point)
    r.reference = [first, of = row.reference](P in) { return of(repeated(first, in)); };
  const auto inputs = static_cast<uint32_t>(first.size());
  // Every set of places that leaves an input its sizes; of many inputs, each place alone.
  for (uint32_t places = 1; places + 1 < 1u << inputs; ++places) {
    if (inputs > 4 && (places & (places - 1)) != 0) continue;
    const Sample sample = with_scalars_in(first, places);
    if (!sample.empty() && repeats(r, sample)) r.samples.push_back(sample);
  }
  return r;
}

// check_in_place(), with gradients of each sample: their sums may be added in another order.
void check_written(const Row& row, Device device) {
  Row values = row;
  values.differentiable = false;
  check_in_place(values, device);
  if (!row.in_place || !row.differentiable || !row.takes(kDouble)) return;
  const Call through = [&row](V leaves) {
    std::vector<Tensor> arguments = leaves;
    arguments[0] = leaves[0].clone();
    return row.in_place(arguments);
  };
  for (const Sample& sample : row.samples) {
    SCOPED_TRACE(text_of(sample));
    const std::vector<Tensor> in = moved(operands(sample, kDouble).tensors, device);
    if (row.call(in).sizes() != in[0].sizes()) continue;  // refused
    const std::vector<Tensor> got = gradients(through, in), want = gradients(row.call, in);
    for (size_t k = 0; k < want.size(); ++k) {
      ASSERT_EQ(got[k].defined(), want[k].defined()) << "input " << k;
      if (want[k].defined()) expect_close(got[k], plain_of(want[k]), row.slack);
    }
  }
}

}  // namespace

void check_scalars(const Row& row) {
  const Row r = with_scalars(row);
  if (r.samples.empty()) return;
  check_forward(r);
  check_derivatives(r);
  check_strides(r);
  check_written(r, kHost);
  check_out(r);
  check_captured(r);
}

void check_scalars(const Row& row, Device device) {
  const Row r = with_scalars(row);
  if (r.samples.empty()) return;
  check_strides(r, device);
  check_written(r, device);
  check_out(r, device);
  check_captured(r, device);
  for (ScalarType dtype : compared_types(r)) {
    for (const Sample& sample : r.samples) {
      SCOPED_TRACE(std::string(short_name_of(dtype)) + " " + text_of(sample));
      const Operands o = operands(sample, dtype);
      std::vector<Tensor> in = moved(o.tensors, device);
      const std::vector<Tensor> want = gradients(r.call, o.tensors);
      // Those that are left on the host may be refused.
      for (const bool on_host : {false, true}) {
        if (on_host)
          for (size_t k = 0; k < in.size(); ++k)
            if (in[k].dim() == 0) in[k] = o.tensors[k];
        Tensor y;
        try {
          y = r.call(in);
        } catch (const Error& e) {
          ASSERT_TRUE(on_host) << e.what();
          continue;
        }
        expect_close(y, expected(r, o.plain), r.slack);
        if (!r.differentiable || !is_floating(dtype)) continue;
        const std::vector<Tensor> got = gradients(r.call, in);
        for (size_t k = 0; k < want.size(); ++k) {
          ASSERT_EQ(got[k].defined(), want[k].defined()) << "input " << k;
          if (!want[k].defined()) continue;
          EXPECT_EQ(got[k].device(), in[k].device());
          expect_close(got[k], plain_of(want[k]), 8 * r.slack);
        }
      }
    }
  }
}

}  // namespace op_table
}  // namespace ramet
