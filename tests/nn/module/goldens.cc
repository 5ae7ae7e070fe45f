#include "tests/nn/module/goldens.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "tests/modules.h"

namespace ramet::testing {
namespace {

constexpr int64_t kMostElements = 64;
constexpr uintmax_t kMostBytes = 2'000'000;
// Of 1 + |x|. Both sides round each step, in orders of their own: the second derivatives of a
// Transformer and of a batch norm come to 1e-14.
constexpr double kTolerance = 5e-14;

int64_t number(const std::string& word) {
  size_t end = 0;
  const int64_t n = std::stoll(word, &end);
  if (end != word.size()) fail("goldens", "no number: ", word);
  return n;
}

// The words of a line after its dtype.
Tensor tensor_of(std::istream& words, const std::string& dtype) {
  std::string word;
  words >> word;
  std::vector<int64_t> sizes;
  int64_t count = 1;
  std::istringstream extents(word == "-" ? "" : word);
  while (std::getline(extents, word, 'x')) sizes.push_back(number(word)), count *= sizes.back();
  std::vector<double> values;
  while (words >> word) {
    size_t end = 0;
    values.push_back(std::stod(word, &end));
    if (end != word.size()) fail("goldens", "no number: ", word);
  }
  if (count > kMostElements || static_cast<int64_t>(values.size()) != count)
    fail("goldens", "a tensor of ", count, " elements has ", values.size(), " (at most ",
         kMostElements, ")");
  return tensor(values, kDouble).view(sizes).to(dtype == "long" ? kLong : kDouble);
}

// As drawn() of make_goldens.py, which says why.
Tensor drawn(const Draw& draw, size_t seed, bool even = false) {
  int64_t count = 1, u = 1;
  for (const int64_t size : draw.sizes) count *= size;
  const auto next = [&u] { u = u * 7 % 997; };
  for (size_t i = 0; i < 67 * seed + 5; ++i) next();
  std::vector<double> v;
  for (int64_t i = 0; i < count; ++i, next()) {
    if (draw.kind == Draw::kIndex) v.push_back(static_cast<double>(u % draw.below));
    if (draw.kind == Draw::kSign) v.push_back(u % 2 ? 1 : -1);
    if (draw.kind == Draw::kPositive) v.push_back(static_cast<double>(u + 2) / 1000);
    if (draw.kind == Draw::kReal)
      v.push_back(std::nearbyint(static_cast<double>(2 * u - 997 - even) * draw.by) / 1000);
  }
  return tensor(v, kDouble).view(draw.sizes).to(draw.kind == Draw::kIndex ? kLong : kDouble);
}
Tensor drawn(IntArrayRef sizes, size_t seed) { return drawn(real(sizes.vec()), seed); }

void read(const std::filesystem::path& path, std::vector<Golden>& all) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string what, word;
    words >> what;
    if (what == "module" || what == "function") {
      const size_t colon = line.rfind(": ");
      if (colon == std::string::npos) fail("goldens", "no mode in ", path.string(), ": ", line);
      all.push_back({what,
                     line.substr(what.size() + 1, colon - what.size() - 1),
                     line.substr(colon + 2),
                     {}});
      continue;
    }
    while (words >> word && word != "double" && word != "long") what += " " + word;
    if (all.empty() || !words || !all.back().tensors.emplace(what, tensor_of(words, word)).second)
      fail("goldens", "out of place in ", path.string(), ": ", line.substr(0, 80));
  }
}

// Collects what differs, and which tensors of the file something was compared with.
struct Comparison {
  const Golden& golden;
  std::set<std::string> seen = {};
  std::string found = {};

  void problem(const std::string& text) { found += found.empty() ? text : "; " + text; }
  const Tensor* taken(const std::string& what) {
    seen.insert(what);
    return golden.find(what);
  }
  void same(const std::string& what, const Tensor& got) {
    const Tensor* expected = taken(what);
    if (!expected) return problem("no " + what + " in the file");
    if (got.scalar_type() != expected->scalar_type())
      return problem(shown(what, ": ", got.scalar_type()));
    const std::string d = difference(got, *expected, kTolerance);
    if (!d.empty()) problem(what + ": " + d);
  }
};

Tensor or_zeros(const Tensor& gradient, const Tensor& of) {
  return gradient.defined() ? gradient : zeros_like(of).detach();
}

using Named = std::vector<std::pair<std::string, Tensor>>;

// Gives parameters and buffers their numbers. Adds the parameters that are not frozen to `leaves`;
// copies of the buffers.
Named fill(nn::Module& module, Named& leaves) {
  const NoGradGuard off;
  size_t parameter = 12, buffer = 30;
  for (auto& p : module.named_parameters()) {
    p.value().copy_(drawn(p.value().sizes(), parameter++));
    if (p.value().requires_grad()) leaves.emplace_back(p.key(), p.value());
  }
  Named before;
  for (auto& b : module.named_buffers()) {
    const bool variance = b.key().ends_with("var");
    if (!b.value().is_floating_point()) b.value().fill_(3);
    else
      b.value().copy_(drawn(
          variance ? positive(b.value().sizes().vec()) : real(b.value().sizes().vec()), buffer));
    before.emplace_back(b.key(), b.value().clone()), ++buffer;
  }
  return before;
}

}  // namespace

const Tensor* Golden::find(const std::string& what) const {
  const auto at = tensors.find(what);
  return at == tensors.end() ? nullptr : &at->second;
}

std::string Golden::differs(const std::function<Tensor(const Tensors&)>& call) const {
  Tensors inputs;
  while (const Tensor* t = find(shown("input ", inputs.size()))) inputs.push_back(t->clone());
  return differs(call, nullptr, inputs);
}

std::string Golden::differs(const std::function<Tensor(const Tensors&)>& call, nn::Module& module,
                            const std::vector<Draw>& draws) const {
  Tensors inputs;
  for (size_t i = 0; i < draws.size(); ++i) {
    Draw draw = draws[i];
    draw.sizes[0] = find("output")->size(0);
    const Tensor* given = find(shown("input ", i));
    inputs.push_back(given ? given->clone() : drawn(draw, i, i % 2 == 1));
  }
  return differs(call, &module, inputs);
}

std::string Golden::differs(const std::function<Tensor(const Tensors&)>& call, nn::Module* module,
                            const Tensors& inputs) const {
  Comparison compared{*this};
  Named leaves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = shown("input.", i);
    compared.taken(shown("input ", i));
    if (find("gradient " + name))
      leaves.emplace_back(name, Tensor(inputs[i]).set_requires_grad(true));
  }
  const Named buffers = module ? fill(*module, leaves) : Named();
  const Tensor y = call(inputs);
  compared.same("output", y);
  for (const auto& [name, before] : buffers) {
    const Tensor after = module->named_buffers()[name];
    if (find("after " + name)) compared.same("after " + name, after);
    else if (bits(after) != bits(before)) compared.problem(name + " has changed");
  }
  if (y.requires_grad()) {
    const Tensor cotangent = drawn(y.sizes(), 40).set_requires_grad(true);
    Tensors of;
    for (const auto& [name, t] : leaves) of.push_back(t);
    const Tensors first = autograd::grad({y}, of, {cotangent}, true, true, true);
    Tensor along = zeros({}, kDouble);
    for (size_t i = 0; i < of.size(); ++i) {
      const auto& name = leaves[i].first;
      const Tensor g = or_zeros(first[i], of[i]);
      compared.same("gradient " + name, g);
      along = along + (g * drawn(g.sizes(), 50 + i)).sum();
    }
    of.push_back(cotangent), leaves.emplace_back("cotangent", cotangent);
    const Tensors second = along.requires_grad()
                               ? autograd::grad({along}, of, {}, false, false, true)
                               : Tensors(of.size());
    for (size_t i = 0; i < of.size(); ++i) {
      const Tensor g = or_zeros(second[i], of[i]);
      const std::string what = "second " + leaves[i].first;
      if (find(what)) compared.same(what, g);
      else if (!difference(g, zeros_like(g), kTolerance).empty())
        compared.problem("no " + what + " in the file, and it is not 0");
    }
  }
  for (const auto& [what, t] : tensors)
    if (!compared.seen.count(what)) compared.problem("nothing here is PyTorch's " + what);
  return compared.found;
}

const std::vector<Golden>& goldens() {
  static const std::vector<Golden> all = [] {
    std::vector<Golden> made;
    uintmax_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator("tests/nn/goldens"))
      if (entry.path().extension() == ".txt") {
        bytes += entry.file_size();
        read(entry.path(), made);
      }
    if (bytes > kMostBytes) fail("goldens", bytes, " bytes, ", kMostBytes, " are allowed");
    return made;
  }();
  return all;
}

}  // namespace ramet::testing
