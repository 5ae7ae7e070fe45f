// What an optimizer's options consist of, listed once: saving, loading, comparison, ranges and what
// a group takes from the optimizer's defaults come from the list.
#pragma once
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "nn/optim/optimizer.h"

namespace ramet::optim::detail {

/// One setting.
struct Field {
  const char* name;  // in files
  std::variant<double*, bool*, int64_t*, std::optional<int64_t>*, std::optional<std::string>*> at;
  /// Where a number has a range, what it is in "Invalid weight_decay value: -1".
  const char* called = nullptr;
  bool fraction = false;  // the range: below 1 too, not only from 0 on
};

/// The settings of `optimizer`, which error texts begin with.
struct RAMET_API Fields {
  const char* optimizer;
  std::vector<Field> list;

  void read(serialize::InputArchive& archive) const;
  void write(serialize::OutputArchive& archive) const;
  bool equals(const Fields& other) const;
  /// Takes from `defaults` what is as in `fresh`.
  void inherit(const Fields& fresh, const Fields& defaults) const;
  void check() const;
  /// OptimizerOptions::momentum_place().
  double* momentum() const;
};

/// Options that have a list.
template <class Derived> class ListedOptions : public OptimizerCloneableOptions<Derived> {
 public:
  void serialize(serialize::InputArchive& archive) override { fields().read(archive); }
  void serialize(serialize::OutputArchive& archive) const override {
    Derived copy(self());
    list_of(copy).write(archive);
  }
  double get_lr() const override { return self().lr(); }
  void set_lr(const double lr) override { static_cast<Derived&>(*this).lr(lr); }
  double* momentum_place() override { return fields().momentum(); }
  void inherit(const OptimizerOptions& defaults) override {
    const auto* given = dynamic_cast<const Derived*>(&defaults);
    if (!given) return;
    Derived fresh = fresh_options(), copy(*given);
    fields().inherit(list_of(fresh), list_of(copy));
  }
  void check() const override {
    Derived copy(self());
    list_of(copy).check();
  }
  friend bool operator==(const Derived& lhs, const Derived& rhs) {
    Derived a(lhs), b(rhs);
    return list_of(a).equals(list_of(b));
  }

 private:
  virtual Fields fields() = 0;
  static Fields list_of(ListedOptions& options) { return options.fields(); }
  const Derived& self() const { return static_cast<const Derived&>(*this); }
  static Derived fresh_options() {
    // A rate without a default was given: it equals nothing.
    if constexpr (std::is_default_constructible_v<Derived>) return {};
    else return {std::numeric_limits<double>::quiet_NaN()};
  }
};

}  // namespace ramet::optim::detail
