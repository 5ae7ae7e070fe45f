// Options of an optimizer, listed once. Saving, loading, comparison, range checks, a group's
// defaults from the optimizer and the C interface use the list (nn/optim/fields_internal.h).
#pragma once
#include "nn/optim/optimizer.h"

namespace ramet::optim::detail {

struct Fields;

/// Options that have a list. Its members are compiled in the optimizer's .cc alone
/// (RAMET_OPTIMIZER): a program that includes all optimizers would spend a tenth of its
/// compilation on them.
template <class Derived> class RAMET_API ListedOptions : public OptimizerOptions {
 public:
  std::unique_ptr<OptimizerOptions> clone() const override;
  void serialize(serialize::InputArchive& archive) override;
  void serialize(serialize::OutputArchive& archive) const override;
  double get_lr() const override;
  void set_lr(const double lr) override;
  double* momentum_place() override;
  void inherit(const OptimizerOptions& defaults) override;
  void check() const override;
  friend bool operator==(const Derived& lhs, const Derived& rhs) { return equal(lhs, rhs); }
  /// The list; the C interface reads by it.
  static Fields list_of(ListedOptions& options);
  /// Options with their defaults; a rate without one is NaN.
  static Derived fresh();

 private:
  virtual Fields fields() = 0;
  static bool equal(Derived lhs, Derived rhs);
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

}  // namespace ramet::optim::detail
