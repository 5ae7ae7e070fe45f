// Every operation with every dtype and reduction, compared with what BackendCaps say of it.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "parallel/distributed/group/caps.h"
#include "tests/parallel/distributed/groups.h"

namespace ramet::distributed {

/// What an operation has written on a rank of two, and what it should be, of every element. The
/// tensors hold rank + 1 (bool: true on rank 1 alone).
struct Written {
  Tensor values;
  double expected;
};

/// Runs it between both ranks and passes on errors.
inline Written run_operation(const Group& g, const std::string& operation, ScalarType dtype,
                             ReduceOp reduction, Device device) {
  const int me = g->rank();
  const auto of = [&](int rank) { return dtype == kBool ? rank : rank + 1; };
  const TensorOptions where = TensorOptions(dtype).device(device);
  const Tensor mine = full({3}, of(me), where);
  const Tensor out = zeros({3}, where), more = zeros({3}, where);
  const bool flag = dtype == kBool;
  double sums[] = {flag ? 1.0 : 3.0, 1.5, 2, 1, 2};  // indexed by ReduceOp
  const double reduced = sums[static_cast<size_t>(reduction)];
  if (operation == "broadcast") g->broadcast(mine, 1).wait();
  else if (operation == "all_reduce") g->all_reduce(mine, reduction).wait();
  else if (operation == "reduce") g->reduce(mine, 0, reduction).wait();
  else if (operation == "all_reduce_members") g->all_reduce_members({mine}, reduction).wait();
  else if (operation == "all_gather") g->all_gather({more, out}, mine).wait();
  else if (operation == "reduce_scatter") g->reduce_scatter(out, {mine, mine}, reduction).wait();
  else if (operation == "all_to_all") g->all_to_all({more, out}, {mine, mine}).wait();
  else if (operation == "scatter")
    g->scatter(out, me == 1 ? std::vector{mine, mine} : std::vector<Tensor>{}, 1).wait();
  else if (operation == "gather")
    g->gather(me == 0 ? std::vector{more, out} : std::vector<Tensor>{}, mine, 0).wait();
  else if (operation == "send") (me == 1 ? g->send(mine, 0) : g->recv(out, 1)).wait();
  else ADD_FAILURE() << "no such operation: " << operation;

  if (operation == "broadcast") return {mine, static_cast<double>(of(1))};
  if (operation == "all_reduce" || operation == "all_reduce_members") return {mine, reduced};
  if (operation == "reduce") return {mine, me == 0 ? reduced : of(1)};
  if (operation == "reduce_scatter") return {out, reduced};
  const bool got = me == 0 || (operation != "gather" && operation != "send");
  return {out, got ? static_cast<double>(of(1)) : 0.0};
}

/// Of a group of two ranks, with tensors on `device`. What the caps refuse is refused by the call
/// on each rank and ends nothing; what they allow gives the right numbers.
inline void expect_caps(const Group& g, Device device) {
  const BackendCaps& caps = g->caps(device.type());
  EXPECT_STREQ(caps.backend(), g->backend(device.type()));
  EXPECT_TRUE(caps.takes(device.type()));
  EXPECT_EQ(caps.why_not(), "");
  const std::vector<ScalarType> dtypes = {kBool,   kByte,   kChar, kShort,    kInt,   kLong,
                                          kUInt16, kUInt32, kHalf, kBFloat16, kFloat, kDouble};
  ASSERT_EQ(dtypes.size(), static_cast<size_t>(kScalarTypes));
  const std::vector<ReduceOp> reductions = {ReduceOp::sum, ReduceOp::average, ReduceOp::product,
                                            ReduceOp::min, ReduceOp::max};
  int allowed = 0, refused = 0;
  for (const std::string& operation : caps.operations()) {
    if (operation == "barrier" || operation == "exchange") {  // no tensors
      for (const ScalarType dtype : dtypes) EXPECT_FALSE(caps.supports(operation, dtype));
      continue;
    }
    const bool reduces = !caps.reductions(operation).empty();
    for (const ScalarType dtype : dtypes)
      for (const ReduceOp reduction : reductions) {
        if (!reduces && reduction != ReduceOp::sum) continue;
        const bool supported = caps.supports(operation, dtype, reduction);
        const auto listed = caps.reductions(operation);
        if (supported && reduces) { EXPECT_TRUE(std::ranges::count(listed, reduction)); }
        (supported ? allowed : refused) += 1;
        Written written;
        const std::string said =
            error_of([&] { written = run_operation(g, operation, dtype, reduction, device); });
        SCOPED_TRACE(operation + " of " + short_name_of(dtype) + ", reduction " +
                     std::to_string(static_cast<int>(reduction)));
        EXPECT_EQ(said == "no error", supported) << said;
        if (!supported) {
          expect_part(said, "[" + operation + "] ");
          expect_part(said, "expected ");
        } else if (said == "no error") {
          const Tensor values = written.values.to(Device(kCPU, 0)).to(kDouble);
          for (int i = 0; i < 3; ++i)
            EXPECT_EQ(values[i].item<double>(), written.expected) << "element " << i;
        }
      }
  }
  // 6 that move, of 12 dtypes. Three have five reductions: 12 sums, 4 means, 3 x 11 others. One has
  // two.
  EXPECT_EQ(allowed, 6 * 12 + 3 * (12 + 4 + 33) + (12 + 4));
  EXPECT_EQ(refused, 4 * 60 - 3 * 49 - 16);
  g->barrier().wait();  // the group is whole
}

}  // namespace ramet::distributed
