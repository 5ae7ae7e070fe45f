// Every module of nn, by the table tests/modules: how to make it and which inputs to call it with.
// The checks of the matrix go through them: tests/nn/module/module_matrix_test.cc,
// tests/parallel/replicas/replica_matrix_test.cc,
// tests/parallel/distributed/model/rank_matrix_threads_test.cc.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor.h"
#include "nn/module/cloneable.h"
#include "nn/module/module_holder.h"

namespace ramet::testing {

/// What a module is checked for. The module's row names each check that does not apply, with the
/// reason, and that check has to fail there.
enum class Check {
  kClone,
  kEval,         ///< train() and eval() reach all; in evaluation a call repeats
  kRepeats,      ///< a call repeats in training too
  kTrainIsEval,  ///< a call gives the same in training as in evaluation
  kPieces,       ///< a batch gives what its halves give
  kPrint,
  kArchive,
  kHalf,
  kBFloat16,
  kDouble,
  kCaptured,
  kReplicas,  ///< on two devices, with gradients
  kSecond,    ///< double backward through replicas
  kTree,      ///< the same bits for 1, 2 and 4 devices under tree(4)
  kRanks,     ///< DistributedDataParallel on two ranks
  kShards,    ///< fully_shard on two ranks
  kOnnx,      ///< export_onnx; the reason is the text of the refusal
};

using Tensors = std::vector<Tensor>;

/// An input, batch first.
struct Draw {
  std::vector<int64_t> sizes;
  enum Kind { kReal, kPositive, kSign, kIndex } kind = kReal;
  int64_t below = 0;  ///< of indices
  double by = 1;      ///< multiplies the goldens' numbers
};
constexpr int64_t kBatch = 8;
/// In (-1, 1) without a small gap around 0.
inline Draw real(std::vector<int64_t> sizes) { return {std::move(sizes), Draw::kReal}; }
/// In (0, 1).
inline Draw positive(std::vector<int64_t> sizes) { return {std::move(sizes), Draw::kPositive}; }
/// 1 or -1.
inline Draw signs(std::vector<int64_t> sizes) { return {std::move(sizes), Draw::kSign}; }
inline Draw indices(int64_t below, std::vector<int64_t> sizes) {
  return {std::move(sizes), Draw::kIndex, below};
}
/// The same values for the same seed. Indices are int64.
Tensor drawn(const Draw& draw, uint64_t seed, ScalarType dtype);

/// An input of an example. Those of the matrix are without the batch.
struct Input {
  enum Kind { kNone, kReal, kPositive, kSign, kIndex, kNumbers, kNamed } kind = kNone;
  int64_t sizes[5] = {};  ///< until the first 0
  int64_t below = 0;      ///< of indices
  double scale = 2;       ///< of numbers for ONNX, and of those of goldens
  const char* name = "";  ///< a tensor of tests/nn/formats/onnx_models.cc

  std::vector<int64_t> shape() const;
};

/// A row of tests/modules: a module, and what it is used for.
struct ModuleExample {
  const char* type;
  std::shared_ptr<nn::Module> (*made)();
  /// All tensors of the forward's result; null where the row has no inputs.
  Tensors (*call)(nn::Module& module, const Tensors& inputs) = nullptr;
  /// The matrix: its row's name, or null; up to the first without a kind or a reason.
  const char* matrix = nullptr;
  Input inputs[5] = {};
  struct {
    Check check;
    const char* reason;
  } lacks[6] = {};
  /// The same for C, or null.
  const char* json = nullptr;
  Input c_input = {};
  /// A model's name, or null.
  const char* onnx = nullptr;
  Input onnx_inputs[4] = {};
  bool any_batch = false;
  /// With the LibTorch compatibility headers, and `true` after it; or null.
  const char* prints = nullptr;
};
std::span<const ModuleExample> module_examples();

struct ModuleRow {
  std::string name;  ///< of the class; a second row of one class: with a word after it
  std::function<std::shared_ptr<nn::Module>()> make;
  /// All results in one tensor, batch first.
  std::function<Tensor(nn::Module& module, const Tensors& inputs)> call;
  std::vector<Draw> inputs;
  std::vector<std::pair<Check, const char*>> lacking;

  ModuleRow& lacks(Check check, const char* reason) {
    lacking.emplace_back(check, reason);
    return *this;
  }
  /// Null where the check applies.
  const char* why_not(Check check) const {
    for (const auto& [c, reason] : lacking)
      if (c == check) return reason;
    return nullptr;
  }
  Tensors draw(uint64_t seed, ScalarType dtype = kDouble) const;
};
const std::vector<ModuleRow>& all_modules();
const ModuleRow& module_row(const std::string& name);

/// A row's module and a factor, so that there is a parameter in any case.
struct HeldImpl : nn::Cloneable<HeldImpl> {
  explicit HeldImpl(const ModuleRow& row_) : row(&row_) { HeldImpl::reset(); }
  void reset() override;
  Tensor forward(const Tensors& inputs);
  nn::Module& held() const { return *own_children().front().value(); }

  const ModuleRow* row;
  Tensor factor;
};
RAMET_MODULE(Held);

/// With the same parameters after any earlier draws.
Held held(const ModuleRow& row, ScalarType dtype = kDouble);
/// A number to which every element of `y` contributes differently, with second derivatives that are
/// not 0.
Tensor loss_of(const Tensor& y);

template <class... T> std::string shown(const T&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}
/// The bytes of the values, row-major.
std::string bits(const Tensor& t);
/// Of parameters, their gradients and buffers.
std::string bits(const nn::Module& m);
/// Empty, or where they differ by more than tolerance * (1 + |b|).
std::string difference(const Tensor& a, const Tensor& b, double tolerance);
std::string difference(const Tensors& a, const Tensors& b, double tolerance);
/// Of defined ones; zeros for others.
Tensors gradients(const Tensors& of);
/// Rows `part` of `parts` of every input.
Tensors part_of(const Tensors& inputs, int part, int parts);

/// `problem` of each module, empty where there is none.
template <class F> void expect_of_modules(Check check, const F& problem) {
  for (const ModuleRow& row : all_modules()) {
    std::string found;
    try {
      found = problem(row);
    } catch (const std::exception& e) { found = e.what(); }
    if (const char* reason = row.why_not(check))
      EXPECT_NE(found, "") << row.name << " passes: it needs no reason (" << reason << ")";
    else EXPECT_EQ(found, "") << row.name;
  }
}

}  // namespace ramet::testing
