// The matrix over every module and every optimizer: what replicas on several devices have of it
// (tests/modules.h).
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "nn/optim/sgd.h"
#include "parallel/apply/data_parallel.h"
#include "tests/modules.h"
#include "tests/optimizers.h"
#include "tests/parallel/support.h"

namespace ramet::testing {
namespace {

using nn::parallel::DataParallel;
using nn::parallel::DataParallelOptions;
using nn::parallel::ReduceOrder;

Tensors wanting_grad(Tensors inputs) {
  for (const Tensor& t : inputs)
    if (t.is_floating_point()) t.set_requires_grad(true);
  return inputs;
}
/// Parameters and inputs that have gradients.
Tensors leaves(Held net, const Tensors& inputs) {
  Tensors all;
  for (const Tensors& of : {net->parameters(), inputs})
    for (const Tensor& t : of)
      if (t.requires_grad()) all.push_back(t);
  return all;
}
/// The module itself over a batch, in the pieces in which two devices get it.
Tensor by_itself(const ModuleRow& row, Held net, const Tensors& x) {
  manual_seed(1);
  const bool whole = !row.why_not(Check::kPieces);
  return whole ? net(x) : cat({net(part_of(x, 0, 2)), net(part_of(x, 1, 2))});
}

TEST(ReplicaMatrix, GradientsOnTwoDevices) {
  expect_of_modules(Check::kReplicas, [](const ModuleRow& row) {
    Held net = held(row), twin = held(row);
    const Tensors x = wanting_grad(row.draw(1)), y = wanting_grad(row.draw(1));
    DataParallel<Held> on_two(net, DataParallelOptions(many(2)));
    manual_seed(1);
    const Tensor out = on_two(x), expected = by_itself(row, twin, y);
    if (std::string d = difference(out, expected, 1e-12); !d.empty()) return d;
    loss_of(out).backward();
    loss_of(expected).backward();
    return difference(gradients(leaves(net, x)), gradients(leaves(twin, y)), 1e-11);
  });
}

/// The gradients of a penalty on gradients.
Tensors second(const Tensor& out, const Tensors& wrt) {
  const Tensors first = autograd::grad({loss_of(out)}, wrt, {}, true, true, true);
  Tensor penalty = zeros({}, TensorOptions(kDouble));
  for (const Tensor& g : first)
    if (g.defined()) penalty = penalty + (g * g).sum().to(kHost);
  penalty.backward();
  return gradients(wrt);
}
TEST(ReplicaMatrix, DoubleBackward) {
  expect_of_modules(Check::kSecond, [](const ModuleRow& row) {
    Held net = held(row), twin = held(row);
    const Tensors x = wanting_grad(row.draw(1)), y = wanting_grad(row.draw(1));
    DataParallel<Held> on_two(net, DataParallelOptions(many(2)));
    manual_seed(1);
    const Tensors got = second(on_two(x), leaves(net, x));
    return difference(got, second(by_itself(row, twin, y), leaves(twin, y)), 1e-9);
  });
}

/// The bits of everything after some steps on so many devices.
std::string trained(const ModuleRow& row, const AnyOptimizer& optimizer, int devices) {
  Held net = held(row, kFloat);
  DataParallelOptions options(many(devices));
  options.order = ReduceOrder::tree(4);
  DataParallel<Held> model(net, options);
  Steps step(optimizer, net->parameters());
  manual_seed(1);
  std::string out;
  for (uint64_t i = 0; i < 3; ++i) {
    step([&] {
      net->zero_grad();
      const Tensor y = model(row.draw(i, kFloat)), loss = loss_of(y);
      out += bits(y);
      loss.backward();
      return loss;
    });
  }
  return out + bits(*net);
}
std::string same_bits_under_tree(const ModuleRow& row, const AnyOptimizer& optimizer) {
  const std::string one = trained(row, optimizer, 1);
  for (const int devices : {2, 4})
    if (trained(row, optimizer, devices) != one)
      return shown("other bits on ", devices, " devices");
  return "";
}
TEST(ReplicaMatrix, SameBitsUnderTree) {
  const AnyOptimizer sgd = optimizer_with<optim::SGD>("SGD", optim::SGDOptions(.1).momentum(.9));
  expect_of_modules(Check::kTree,
                    [&](const ModuleRow& row) { return same_bits_under_tree(row, sgd); });
}
TEST(ReplicaMatrix, SameBitsWithEveryOptimizer) {
  for (const AnyOptimizer& optimizer : every_optimizer())
    EXPECT_EQ(same_bits_under_tree(module_row("Sequential"), optimizer), "") << optimizer.name;
}

}  // namespace
}  // namespace ramet::testing
