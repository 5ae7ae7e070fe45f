// ParameterList, ParameterDict: parameters by position or by name. A tensor that is put in becomes
// a parameter with the requires_grad that it has.
#pragma once
#include "nn/module/cloneable.h"
#include "nn/module/module_holder.h"

namespace ramet::nn {

class RAMET_API ParameterListImpl : public Cloneable<ParameterListImpl> {
 public:
  using Iterator = OrderedDict<std::string, Tensor>::Iterator;
  using ConstIterator = OrderedDict<std::string, Tensor>::ConstIterator;
  using Item = OrderedDict<std::string, Tensor>::Item;

  ParameterListImpl() = default;
  /// Tensors; named "0", "1", ...
  template <class... Tensors,
            std::enable_if_t<(sizeof...(Tensors) > 0) &&
                                 (std::is_convertible<Tensors, Tensor>::value && ...),
                             int> = 0>
  explicit ParameterListImpl(Tensors&&... parameters) {
    (append(std::forward<Tensors>(parameters)), ...);
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  void append(const Tensor& parameter);
  /// Its value, under a position of its own.
  void append(const Item& pair) { append(pair.value()); }
  /// Appends all of a container.
  template <class Container> void extend(const Container& container) {
    for (const auto& parameter : container) append(parameter);
  }
  template <class Container> ParameterListImpl& operator+=(const Container& other) {
    extend(other);
    return *this;
  }

  /// Over the items, in order:
  Iterator begin() { return parameters_.begin(); }
  ConstIterator begin() const { return parameters_.begin(); }
  Iterator end() { return parameters_.end(); }
  ConstIterator end() const { return parameters_.end(); }
  /// Parameter `index`; an Error outside [0, size()).
  Tensor& at(size_t index) { return parameters_[key(index)]; }
  const Tensor& at(size_t index) const { return parameters_[key(index)]; }
  Tensor& operator[](size_t index) { return at(index); }
  const Tensor& operator[](size_t index) const { return at(index); }
  /// How many there are, and whether there is none:
  size_t size() const noexcept { return parameters_.size(); }
  bool is_empty() const noexcept { return parameters_.is_empty(); }

 private:
  std::string key(size_t index) const;
};
extern template class Cloneable<ParameterListImpl>;
RAMET_MODULE(ParameterList);

class RAMET_API ParameterDictImpl : public Cloneable<ParameterDictImpl> {
 public:
  using Iterator = OrderedDict<std::string, Tensor>::Iterator;
  using ConstIterator = OrderedDict<std::string, Tensor>::ConstIterator;

  ParameterDictImpl() = default;
  explicit ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters) {
    update(parameters);
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  /// An Error if the key is there.
  Tensor& insert(const std::string& key, const Tensor& parameter) {
    return register_parameter(key, parameter, parameter.defined() && parameter.requires_grad());
  }
  /// Removes and returns; an Error if the key is absent.
  Tensor pop(const std::string& key);
  /// Adds, or replaces under the same key.
  template <class Container> void update(const Container& container) {
    for (const auto& item : container) put(item.key(), item.value());
  }
  /// Removes all.
  void clear() { parameters_.clear(); }

  /// All of them, in order of insertion: keys or parameters alone, and as a range:
  std::vector<std::string> keys() const { return parameters_.keys(); }
  std::vector<Tensor> values() const { return parameters_.values(); }
  Iterator begin() { return parameters_.begin(); }
  ConstIterator begin() const { return parameters_.begin(); }
  Iterator end() { return parameters_.end(); }
  ConstIterator end() const { return parameters_.end(); }
  /// How many there are, and whether there is none:
  size_t size() const noexcept { return parameters_.size(); }
  bool empty() const noexcept { return parameters_.is_empty(); }
  /// Is there such a key?
  bool contains(const std::string& key) const noexcept { return parameters_.contains(key); }
  /// An Error if the key is absent.
  Tensor& get(const std::string& key) { return parameters_[key]; }
  const Tensor& get(const std::string& key) const { return parameters_[key]; }
  Tensor& operator[](const std::string& key) { return parameters_[key]; }
  const Tensor& operator[](const std::string& key) const { return parameters_[key]; }

 private:
  void put(const std::string& key, const Tensor& parameter);
};
extern template class Cloneable<ParameterDictImpl>;
RAMET_MODULE(ParameterDict);

}  // namespace ramet::nn
