// The matrix over every module: what one device has of it (tests/modules.h); and PyTorch's numbers,
// of functions too.
#include <map>
#include <set>
#include <sstream>

#include "autograd/grad_mode.h"
#include "autograd/graph/captured.h"
#include "autograd/ops.h"
#include "nn/optim/sgd.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/save.h"
#include "tests/modules.h"
#include "tests/nn/module/goldens.h"
#include "tests/optimizers.h"

namespace ramet::testing {
namespace {

void wants_grad(const Tensors& inputs) {
  for (const Tensor& t : inputs)
    if (t.is_floating_point()) t.set_requires_grad(true);
}

Tensor step(Held net, const Tensors& inputs) {
  net->zero_grad();
  const Tensor loss = loss_of(net(inputs));
  loss.backward();
  return loss;
}

TEST(ModuleMatrix, Clones) {
  expect_of_modules(Check::kClone, [](const ModuleRow& row) -> std::string {
    Held net = held(row);
    const Tensors x = row.draw(1);
    const Tensor y = net(x);
    for (const Device device : {Device(kCPU, 0), Device(kCPU, 1)}) {
      const auto copy = std::dynamic_pointer_cast<HeldImpl>(net->clone(device));
      Held other(copy);
      if (typeid(other->held()) != typeid(net->held())) return "another class";
      manual_seed(3);
      Tensors there;
      for (const Tensor& t : x) there.push_back(t.to(device));
      const Tensor again = other(there);
      manual_seed(3);
      if (bits(again) != bits(net(x))) return shown("another result on ", device);
      if (again.device() != device) return shown("not on ", device);
      step(other, there);
      for (const Tensor& p : net->parameters())
        if (p.grad().defined()) return "a gradient reaches the source";
      const std::string before = bits(*net);
      const NoGradGuard off;
      for (const Tensor& p : other->parameters()) p.fill_(0.5);
      for (const Tensor& b : other->buffers()) b.fill_(1);
      if (bits(*net) != before) return "memory is shared with the source";
    }
    return "";
  });
}

TEST(ModuleMatrix, Evaluation) {
  expect_of_modules(Check::kEval, [](const ModuleRow& row) -> std::string {
    Held net = held(row);
    const Tensors x = row.draw(1);
    for (const bool on : {false, true, false}) {
      net->train(on);
      for (const auto& m : net->modules())
        if (m->is_training() != on) return shown("train(", on, ") does not reach ", m->name());
    }
    manual_seed(1);
    const std::string first = bits(net(x)), state = bits(*net);
    manual_seed(2);
    if (bits(net(x)) != first) return "another result";
    return bits(*net) == state ? "" : "the state changed";
  });
}

TEST(ModuleMatrix, Repeats) {
  expect_of_modules(Check::kRepeats, [](const ModuleRow& row) -> std::string {
    const Tensors x = row.draw(1);
    manual_seed(1);
    const std::string first = bits(held(row)(x));
    manual_seed(2);
    return bits(held(row)(x)) == first ? "" : "another result";
  });
}

TEST(ModuleMatrix, TrainingIsEvaluation) {
  expect_of_modules(Check::kTrainIsEval, [](const ModuleRow& row) -> std::string {
    Held net = held(row);
    const Tensors x = row.draw(1);
    net->eval();
    const std::string evaluated = bits(net(x));
    net->train();
    return bits(net(x)) == evaluated ? "" : "another result";
  });
}

TEST(ModuleMatrix, PiecesOfABatch) {
  expect_of_modules(Check::kPieces, [](const ModuleRow& row) {
    Held net = held(row);
    if (row.why_not(Check::kRepeats)) net->eval();
    const Tensors x = row.draw(1);
    const Tensor pieces = cat({net(part_of(x, 0, 2)), net(part_of(x, 1, 2))});
    return difference(pieces, net(x), 1e-12);
  });
}

TEST(ModuleMatrix, Prints) {
  expect_of_modules(Check::kPrint, [](const ModuleRow& row) -> std::string {
    const auto text = [](const nn::Module& m) {
      std::ostringstream out;
      out << m;
      return out.str();
    };
    Held net = held(row);
    const std::string name = row.name.substr(0, row.name.find(' ')), printed = text(net->held());
    const size_t at = printed.find(name);
    if (at == std::string::npos) return "does not name its class: " + printed;
    if (at != 0 && printed.compare(0, at, "ramet::nn::") != 0)
      return "another namespace: " + printed;
    if (printed.find("0x") != std::string::npos) return "an address: " + printed;
    const auto copy = net->clone();
    if (text(*copy) != text(*net)) return "a clone says something else: " + text(*copy);
    // Under a parent it is indented as a whole.
    return text(*net).find("(held): " + printed.substr(0, printed.find('\n'))) == std::string::npos
               ? "a parent says something else: " + text(*net)
               : "";
  });
}

TEST(ModuleMatrix, Archives) {
  expect_of_modules(Check::kArchive, [](const ModuleRow& row) -> std::string {
    if (!row.make()->is_serializable()) return "not serializable";
    Held net = held(row, kFloat);
    const Tensors x = row.draw(1, kFloat);
    step(net, x);  // statistics change
    net->zero_grad();
    net->eval();
    std::stringstream file;
    save(net, file);
    Held other(row);
    load(other, file);
    other->eval();
    if (bits(*other) != bits(*net)) return "another state";
    if (bits(other(x)) != bits(net(x))) return "another result";
    // By names alone.
    OrderedDict<std::string, Tensor> state = net->named_parameters();
    for (const auto& b : net->named_buffers()) state.insert(b.key(), b.value());
    Held third(row);
    third->eval();
    const NoGradGuard off;
    for (const auto& p : third->named_parameters()) p.value().copy_(state[p.key()]);
    for (const auto& b : third->named_buffers()) b.value().copy_(state[b.key()]);
    return bits(third(x)) == bits(net(x)) ? "" : "another result by names";
  });
}

// Against the same numbers in double. Tolerances of 16 bits: five units of the dtype at 1.
std::string in_dtype(const ModuleRow& row, ScalarType dtype, double tolerance) {
  Held net = held(row, dtype);
  Held twin = held(row, dtype);
  twin->to(kDouble);
  Tensors x = row.draw(1, dtype), wide;
  for (const Tensor& t : x) wide.push_back(t.is_floating_point() ? t.to(kDouble, false, true) : t);
  wants_grad(x);
  wants_grad(wide);
  manual_seed(1);
  const Tensor y = net(x);
  manual_seed(1);
  const Tensor expected = twin(wide);
  if (y.scalar_type() != dtype) return shown("the result is ", y.scalar_type());
  if (const std::string d = difference(y, expected, tolerance); !d.empty()) return d;
  loss_of(y).backward();
  loss_of(expected).backward();
  for (const Tensor& p : net->parameters())
    if (p.grad().defined() && p.grad().scalar_type() != dtype) return "a gradient's dtype";
  const std::string d =
      difference(gradients(net->parameters()), gradients(twin->parameters()), 4 * tolerance);
  return d.empty() ? difference(gradients(x), gradients(wide), 4 * tolerance) : d;
}
TEST(ModuleMatrix, Half) {
  expect_of_modules(Check::kHalf,
                    [](const ModuleRow& row) { return in_dtype(row, kHalf, 5 * 0x1p-10); });
}
TEST(ModuleMatrix, BFloat16) {
  expect_of_modules(Check::kBFloat16,
                    [](const ModuleRow& row) { return in_dtype(row, kBFloat16, 5 * 0x1p-7); });
}
TEST(ModuleMatrix, Double) {
  expect_of_modules(Check::kDouble, [](const ModuleRow& row) {
    const std::string d = in_dtype(row, kDouble, 0);
    return d.empty() ? in_dtype(row, kFloat, 2e-6) : d;
  });
}

TEST(ModuleMatrix, Captured) {
  expect_of_modules(Check::kCaptured, [](const ModuleRow& row) -> std::string {
    std::string states[2];
    for (const bool captured : {false, true}) {
      Held net = held(row, kFloat);
      optim::SGD sgd(net->parameters(), optim::SGDOptions(.1).momentum(.9));
      const Tensors x = row.draw(1, kFloat);
      manual_seed(5);
      const auto train = [&] {
        const Tensor loss = step(net, x);
        sgd.step();
        return loss;
      };
      Captured run(train);
      for (int i = 0; i < 5; ++i) {
        // Other values in the same memory.
        const Tensors next = row.draw(static_cast<uint64_t>(i) + 2, kFloat);
        for (size_t k = 0; k < x.size(); ++k) x[k].copy_(next[k]);
        states[captured] += bits(captured ? run() : train());
      }
      states[captured] += bits(*net);
      if (captured && run.counters().replays < 2) return "nothing was repeated";
    }
    return states[0] == states[1] ? "" : "other bits";
  });
}

// "train" and "eval" where their numbers differ, else "both"; for what is random in training only
// "eval". A module of the list without its goldens fails, and so does a golden without its module.
// The files of tests/modules and of the goldens have the same names.
TEST(ModuleMatrix, Goldens) {
  std::map<std::string, std::set<std::string>> modes;
  for (const Golden& golden : goldens()) {
    if (golden.kind != "module") continue;
    EXPECT_TRUE(modes[golden.name].insert(golden.mode).second) << "twice: " << golden.name;
    for (const bool on : {false, true}) {
      if (golden.mode == (on ? "eval" : "train")) continue;
      std::string found;
      try {
        const ModuleRow& row = module_row(golden.name);
        const auto module = row.make();
        module->to(kDouble);
        module->train(on);
        const auto call = [&](const Tensors& inputs) { return row.call(*module, inputs); };
        found = golden.differs(call, *module, row.inputs);
      } catch (const std::exception& e) { found = e.what(); }
      EXPECT_EQ(found, "") << golden.name << ", " << (on ? "train" : "eval");
    }
  }
  for (const ModuleRow& row : all_modules()) {
    std::set<std::string> expected = {"both"};
    if (row.why_not(Check::kTrainIsEval)) expected = {"eval", "train"};
    if (row.why_not(Check::kRepeats)) expected = {"eval"};
    EXPECT_EQ(modes[row.name], expected) << row.name;
  }
}

TEST(FunctionGoldens, AsPyTorch) {
  std::map<std::string, const Golden*> by_name;
  for (const Golden& golden : goldens())
    if (golden.kind == "function") {
      EXPECT_TRUE(by_name.emplace(golden.name, &golden).second) << "twice: " << golden.name;
    }
  for (const FunctionRow& row : golden_functions()) {
    const auto at = by_name.find(row.name);
    EXPECT_EQ(at == by_name.end(), row.why_not != nullptr) << row.name;
    if (at == by_name.end()) continue;
    std::string found;
    try {
      found = at->second->differs(row.call);
    } catch (const std::exception& e) { found = e.what(); }
    EXPECT_EQ(found, "") << row.name;
    by_name.erase(at);
  }
  for (const auto& [name, golden] : by_name) ADD_FAILURE() << "no function here: " << name;
}

}  // namespace
}  // namespace ramet::testing
