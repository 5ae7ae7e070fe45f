#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/graph/captured.h"
#include "tests/autograd/table/op_checks.h"
#include "tests/share.h"

namespace ramet {
namespace op_table {
namespace {

std::string bits_of_all(V tensors) {
  std::string out;
  for (const Tensor& t : tensors) out += (t.defined() ? bits(t) : "none") + ";";
  return out;
}

// Is it "[op] not capturable" of the row's own function? The same text is right for its gradient.
bool refuses_in_its_name(const Row& row, const std::string& text) {
  const std::string own = row.name.substr(0, row.name.find('.'));
  for (const std::string& op : {row.refusing, own, "linalg_" + own})
    if (!op.empty() && text.rfind("[" + op + "] not capturable: ", 0) == 0) return true;
  return false;
}

// f() eagerly and captured, with these values in `in` and with others: the second ones by replays.
template <class F> void expect_replayed(const Row& row, V in, V first, V second, const F& f) {
  const auto put = [&](V values) {
    for (size_t k = 0; k < in.size(); ++k) in[k].copy_(values[k]);
  };
  Captured step([&f] {
    f();  // memory that others may take over
    return f();
  });
  for (int call = 0; call < 3; ++call) {
    put(call == 1 ? second : first);
    const std::string want = bits_of_all(f());
    try {
      ASSERT_TRUE(bits_of_all(step()) == want) << "call " << call;
    } catch (const Error& e) {
      ASSERT_TRUE(refuses_in_its_name(row, e.what())) << e.what();
      ASSERT_NE(row.reads_host + row.no_capture, "") << e.what();
      return;
    }
  }
  EXPECT_EQ(step.counters().captures, 1u);
  EXPECT_EQ(row.no_capture, "") << "it was captured";
  // Each operand in turn lies in other memory.
  for (size_t k = 0; k < in.size(); ++k) {
    if (in[k].numel() == 0) continue;
    in[k].set_data(second[k].clone());
    const std::string expected = bits_of_all(f());
    EXPECT_TRUE(bits_of_all(step()) == expected) << "of before it was moved: operand " << k;
  }
}

}  // namespace

void check_captured(const Row& row, Device device) {
  for (ScalarType dtype : types_on(device, row, compared_types(row))) {
    for (const Sample& sample : row.samples) {
      // A replay runs the kernels of the calls that it recorded. Where a call costs many times as
      // much, one sample is enough: other tests of the row run the others' kernels.
      if (testing::one_repeat_in() > 1 && &sample != &row.samples.front()) break;
      SCOPED_TRACE(std::string(short_name_of(dtype)) + " " + text_of(sample));
      const std::vector<Tensor> in = moved(operands(sample, dtype).tensors, device),
                                first = moved(operands(sample, dtype, 3).tensors, device),
                                second = moved(operands(sample, dtype, 5).tensors, device);
      expect_replayed(row, in, first, second, [&] { return std::vector<Tensor>{row.call(in)}; });
      if (!row.differentiable || !is_floating(dtype) || !row.reads_host.empty()) continue;
      const Tensor seed = seed_like(row.call(in));
      expect_replayed(row, in, first, second, [&] {
        std::vector<Tensor> leaves, wanted;
        for (const Tensor& t : in) leaves.push_back(t.detach());
        require_grad(leaves);
        for (const Tensor& t : leaves)
          if (t.requires_grad()) wanted.push_back(t);
        const Tensor y = row.call(leaves);
        if (!y.requires_grad()) return std::vector<Tensor>{y};
        return autograd::grad({y}, wanted, {seed}, false, false, true);
      });
    }
  }
}

}  // namespace op_table
}  // namespace ramet
