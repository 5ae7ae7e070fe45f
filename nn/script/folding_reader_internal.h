// Reads a module's forward() as one layer (Note [Folded batch norms]).
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "nn/script/compiler_internal.h"

namespace ramet::script {

/// Programs with a slot for each variable, by their functions.
class Listings {
 public:
  explicit Listings(CompilationUnit& unit) : unit_(unit) {}
  const Listing& of(const ScriptFunction& function);

 private:
  CompilationUnit& unit_;
  std::map<const ScriptFunction*, Listing> known_;
};

/// A forward() of one argument that is a convolution, or a batch norm, of it.
struct Layer {
  const Operator* op = nullptr;
  std::vector<IValue> arguments;             // the first is the input
  const ScriptFunction* function = nullptr;  // that calls it
  size_t offset = 0;                         // of the call in its text
  /// The attributes that decide this.
  std::vector<std::pair<std::shared_ptr<Object>, size_t>> read;
};

class LayerReader {
 public:
  explicit LayerReader(Listings& listings) : listings_(listings) {}
  /// None where the function does anything else.
  std::optional<Layer> read(const ScriptFunction& forward, const std::shared_ptr<Object>& self);

 private:
  struct Value {
    enum class What { kUnknown, kKnown, kInput, kResult };
    What what = What::kUnknown;
    IValue value;
    static Value known(IValue value) { return {What::kKnown, std::move(value)}; }
  };
  std::optional<Value> run(const ScriptFunction& function, std::vector<Value> slots, int depth);
  std::optional<size_t> branch(const Program& p, size_t next, const Instruction& at,
                               const Value& condition, std::vector<Value>& slots) const;
  Listings& listings_;
  Layer layer_;
  int steps_ = 0;
};

}  // namespace ramet::script
