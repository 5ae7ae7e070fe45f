// Sequential: modules run one after the other. May hold further Sequentials.
#pragma once
#include <initializer_list>

#include "nn/module/any_module.h"
#include "nn/module/cloneable.h"

namespace ramet::nn {

/// The first module gets forward's arguments, each next one the result of the one before.
class RAMET_API SequentialImpl : public Cloneable<SequentialImpl> {
 public:
  using Iterator = std::vector<AnyModule>::iterator;
  using ConstIterator = std::vector<AnyModule>::const_iterator;

  SequentialImpl() = default;
  /// Modules by value, by shared_ptr, by holder, or AnyModules; named "0", "1", ... In braces,
  /// Sequential{Linear(2, 8), Linear(8, 1)}, they are made in this order. In parentheses C++ lets
  /// each compiler choose one, and weights are drawn in it.
  template <
      class... Modules,
      std::enable_if_t<(sizeof...(Modules) > 0) &&
                           !(std::is_same<SequentialImpl, std::decay_t<Modules>>::value && ...),
                       int> = 0>
  explicit SequentialImpl(Modules&&... modules) {
    modules_.reserve(sizeof...(Modules));
    (push_back(std::forward<Modules>(modules)), ...);
  }
  explicit SequentialImpl(OrderedDict<std::string, AnyModule>&& ordered_dict);
  explicit SequentialImpl(std::initializer_list<NamedAnyModule> named_modules);

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  /// An Error if it is empty or if the last module returns another type than ReturnType.
  template <class ReturnType = Tensor, class... Inputs> ReturnType forward(Inputs&&... inputs) {
    if constexpr (std::is_same<ReturnType, Tensor>::value && sizeof...(Inputs) == 1 &&
                  (... && detail::is_tensor<Inputs>::value)) {
      return forward_tensor(Tensor(std::forward<Inputs>(inputs)...));
    } else {
      std::vector<AnyValue> values;
      values.reserve(sizeof...(Inputs));
      (values.push_back(AnyValue(std::forward<Inputs>(inputs))), ...);
      AnyValue result = forward_values(std::move(values));
      if (ReturnType* value = result.template try_get<ReturnType>()) return std::move(*value);
      wrong_result(result.type_info(), typeid(ReturnType));
    }
  }
  /// forward() of values of any types.
  AnyValue forward_values(std::vector<AnyValue>&& inputs);
  /// Does every module map one tensor to one?
  bool maps_tensor() const;

  /// Appends a module, by value, by shared_ptr or by holder, under a name or under its number.
  template <class M> void push_back(std::shared_ptr<M> module_ptr) {
    push_back(std::to_string(modules_.size()), std::move(module_ptr));
  }
  template <class M> void push_back(std::string name, std::shared_ptr<M> module_ptr) {
    push_back(std::move(name), AnyModule(std::move(module_ptr)));
  }
  template <class M, detail::enable_if_module_t<M> = 0> void push_back(M&& module) {
    push_back(std::to_string(modules_.size()), std::forward<M>(module));
  }
  template <class M, detail::enable_if_module_t<M> = 0>
  void push_back(std::string name, M&& module) {
    push_back(std::move(name), AnyModule(std::forward<M>(module)));
  }
  template <class M> void push_back(const ModuleHolder<M>& module_holder) {
    push_back(std::to_string(modules_.size()), module_holder);
  }
  template <class M> void push_back(std::string name, const ModuleHolder<M>& module_holder) {
    push_back(std::move(name), AnyModule(module_holder));
  }
  void push_back(AnyModule any_module) {
    push_back(std::to_string(modules_.size()), std::move(any_module));
  }
  void push_back(std::string name, AnyModule any_module);
  /// Appends the modules of a container.
  template <class Container> void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }

  /// Over the modules, in order:
  Iterator begin() { return modules_.begin(); }
  ConstIterator begin() const { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator end() const { return modules_.end(); }
  /// Module `index` as a T. An Error outside [0, size()), or where it is of another class.
  template <class T> T& at(size_t index) { return checked(index).template get<T>(); }
  template <class T> const T& at(size_t index) const { return checked(index).template get<T>(); }
  /// Module `index`. An Error outside [0, size()), or, as a T, where it is of another class.
  std::shared_ptr<Module> ptr(size_t index) const { return checked(index).ptr(); }
  template <class T> std::shared_ptr<T> ptr(size_t index) const {
    return checked(index).template ptr<T>();
  }
  std::shared_ptr<Module> operator[](size_t index) const { return ptr(index); }
  /// How many there are, and whether there is none:
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  const AnyModule& checked(size_t index) const {
    RAMET_CHECK(index < size(), "Sequential", "Index out of range: got ", index,
                ", expected less than ", size());
    return modules_[index];
  }
  Tensor forward_tensor(Tensor x);
  void check_not_empty() const;
  [[noreturn, gnu::cold]] static void wrong_result(const std::type_info& got,
                                                   const std::type_info& asked);

  std::vector<AnyModule> modules_;
};
extern template class Cloneable<SequentialImpl>;

class RAMET_API Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  using Impl [[maybe_unused]] = SequentialImpl;
  Sequential() = default;
  Sequential(std::initializer_list<NamedAnyModule> named_modules);
};

}  // namespace ramet::nn
