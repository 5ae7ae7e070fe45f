// ModuleList, ModuleDict: modules by position or by name. They have no forward; the owner calls the
// members.
#pragma once
#include "nn/module/any_module.h"
#include "nn/module/cloneable.h"

namespace ramet::nn {

class RAMET_API ModuleListImpl : public Cloneable<ModuleListImpl> {
 public:
  using Iterator = std::vector<std::shared_ptr<Module>>::iterator;
  using ConstIterator = std::vector<std::shared_ptr<Module>>::const_iterator;

  ModuleListImpl() = default;
  /// Modules by value, by shared_ptr or by holder; named "0", "1", ... In braces they are made in
  /// this order, as for Sequential.
  template <
      class... Modules,
      std::enable_if_t<(sizeof...(Modules) > 0) &&
                           !(std::is_same<ModuleListImpl, std::decay_t<Modules>>::value && ...),
                       int> = 0>
  explicit ModuleListImpl(Modules&&... modules) {
    (push_back(std::forward<Modules>(modules)), ...);
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  /// Appends a module, by value, by shared_ptr or by holder.
  void push_back(std::shared_ptr<Module> module);
  template <class M, detail::enable_if_module_t<M> = 0> void push_back(M&& module) {
    push_back(std::shared_ptr<Module>(std::make_shared<std::decay_t<M>>(std::forward<M>(module))));
  }
  template <class M> void push_back(const ModuleHolder<M>& module_holder) {
    push_back(std::shared_ptr<Module>(module_holder.ptr()));
  }
  /// Appends all of a container.
  template <class Container> void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }
  /// Those from `index` on move up by one.
  void insert(size_t index, std::shared_ptr<Module> module);
  template <class M> void insert(size_t index, const ModuleHolder<M>& module_holder) {
    insert(index, std::shared_ptr<Module>(module_holder.ptr()));
  }
  template <class M, detail::enable_if_module_t<M> = 0> void insert(size_t index, M&& module) {
    insert(index,
           std::shared_ptr<Module>(std::make_shared<std::decay_t<M>>(std::forward<M>(module))));
  }

  /// Over the modules, in order:
  Iterator begin() { return modules_.begin(); }
  ConstIterator begin() const { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator end() const { return modules_.end(); }
  /// Module `index` as a T. An Error outside [0, size()), or where it is of another class.
  template <class T> T& at(size_t index) { return cast<T>(index); }
  template <class T> const T& at(size_t index) const { return cast<T>(index); }
  /// Module `index`; as a T null where it is of another class. An Error outside [0, size()).
  std::shared_ptr<Module> ptr(size_t index) const { return checked(index); }
  template <class T> std::shared_ptr<T> ptr(size_t index) const {
    return std::dynamic_pointer_cast<T>(checked(index));
  }
  std::shared_ptr<Module> operator[](size_t index) const { return ptr(index); }
  /// How many there are, and whether there is none:
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  const std::shared_ptr<Module>& checked(size_t index) const {
    RAMET_CHECK(index < size(), "ModuleList", "Index out of range: got ", index,
                ", expected less than ", size());
    return modules_[index];
  }
  template <class T> T& cast(size_t index) const {
    T* module = dynamic_cast<T*>(checked(index).get());
    RAMET_CHECK(module, "ModuleList", "Unable to cast module[", index, "] to ",
                detail::type_name(typeid(T)));
    return *module;
  }
  std::vector<std::shared_ptr<Module>> modules_;
};
extern template class Cloneable<ModuleListImpl>;
RAMET_MODULE(ModuleList);

class RAMET_API ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  using Iterator = OrderedDict<std::string, std::shared_ptr<Module>>::Iterator;
  using ConstIterator = OrderedDict<std::string, std::shared_ptr<Module>>::ConstIterator;

  ModuleDictImpl() = default;
  explicit ModuleDictImpl(
      const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
    update(modules);
  }
  explicit ModuleDictImpl(const OrderedDict<std::string, std::shared_ptr<Module>>& modules) {
    update(modules);
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  /// All of them, in order of insertion: keys and modules, either alone, and as a range:
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> items() const;
  std::vector<std::string> keys() const;
  std::vector<std::shared_ptr<Module>> values() const;
  Iterator begin() { return modules_.begin(); }
  ConstIterator begin() const { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator end() const { return modules_.end(); }
  /// How many there are, and whether there is none:
  size_t size() const noexcept { return modules_.size(); }
  bool empty() const noexcept { return modules_.is_empty(); }
  /// Is there such a key?
  bool contains(const std::string& key) const noexcept;
  /// Removes all.
  void clear();
  /// An Error if the key is absent.
  std::shared_ptr<Module> operator[](const std::string& key) const { return modules_[key]; }
  /// The module as a T. An Error if the key is absent, or it is of another class.
  template <class T> T& at(const std::string& key) { return cast<T>(key); }
  template <class T> const T& at(const std::string& key) const { return cast<T>(key); }
  /// Removes and returns.
  std::shared_ptr<Module> pop(const std::string& key);
  /// Adds, or replaces under the same key.
  void update(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
    for (const auto& item : modules) insert(item.first, item.second);
  }
  template <class Container> void update(const Container& container) {
    for (auto& item : container) insert(item.key(), item.value());
  }

 private:
  void insert(const std::string& key, std::shared_ptr<Module> module);
  template <class T> T& cast(const std::string& key) const {
    T* module = dynamic_cast<T*>(modules_[key].get());
    RAMET_CHECK(module, "ModuleDict", "Unable to cast module[", key, "] to ",
                detail::type_name(typeid(T)));
    return *module;
  }
  OrderedDict<std::string, std::shared_ptr<Module>> modules_;
};
extern template class Cloneable<ModuleDictImpl>;
RAMET_MODULE(ModuleDict);

}  // namespace ramet::nn
