// Functional: a function as a module, for use in a Sequential.
#pragma once
#include <functional>

#include "nn/module/cloneable.h"
#include "nn/module/module_holder.h"

namespace ramet::nn {

/// A function as a module: `Functional(relu)`, or with the arguments after the first one:
/// `Functional(max_pool2d, 3, 2, 0, 1, false)`. List arguments are given as containers that own
/// their values.
class RAMET_API FunctionalImpl : public Cloneable<FunctionalImpl> {
 public:
  /// What it calls.
  using Function = std::function<Tensor(Tensor)>;

  explicit FunctionalImpl(Function function) : function_(std::move(function)) {}
  template <class SomeFunction, class... Args, std::enable_if_t<(sizeof...(Args) > 0), int> = 0>
  explicit FunctionalImpl(SomeFunction original_function, Args&&... args)
      : function_(
            std::bind(original_function, std::placeholders::_1, std::forward<Args>(args)...)) {}

  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(Tensor input) { return function_(std::move(input)); }
  Tensor operator()(Tensor input) { return forward(std::move(input)); }
  /// Functions are not saved.
  bool is_serializable() const override { return false; }

 private:
  Function function_;
};
extern template class Cloneable<FunctionalImpl>;
RAMET_MODULE(Functional);

}  // namespace ramet::nn
