// AnyModule: one type that holds a module of any class and can be called with any arguments.
//
// The arguments of forward() must have exactly the types that the module's forward() declares, up
// to references and const.
#pragma once
#include "nn/module/any_value.h"
#include "nn/module/module_holder.h"

namespace ramet::nn {

/// Reads a module's default arguments for forward (RAMET_FORWARD_HAS_DEFAULT_ARGS).
struct RAMET_API ForwardDefaults {
  /// Appends the defaults of what is missing; an Error if the number of arguments does not fit.
  static std::vector<AnyValue> complete(Module& module, std::vector<AnyValue>&& given,
                                        size_t expected);
};

namespace detail {

template <class T>
using enable_if_module_t =
    std::enable_if_t<std::is_base_of<Module, std::decay_t<T>>::value && !is_module_holder<T>::value,
                     int>;

template <class M, class = void> struct has_plain_forward : std::false_type {};
template <class M>
struct has_plain_forward<M, std::void_t<decltype(&M::forward)>> : std::true_type {};

[[noreturn, gnu::cold]] RAMET_API void wrong_argument(size_t index, const std::type_info& expected,
                                                      const std::type_info& got);
[[noreturn, gnu::cold]] RAMET_API void wrong_module(const std::type_info& held,
                                                    const std::type_info& asked);

/// What AnyModule owns.
struct AnyModulePlaceholder {
  virtual ~AnyModulePlaceholder() = default;
  virtual AnyValue forward(std::vector<AnyValue>&& arguments) = 0;
  /// Does forward map one tensor to one tensor? Then map_tensor does it without boxing.
  virtual bool maps_tensor() const = 0;
  virtual Tensor map_tensor(Tensor&& input) = 0;
  virtual std::shared_ptr<Module> ptr() const = 0;
  virtual const std::type_info& type() const = 0;
  virtual std::unique_ptr<AnyModulePlaceholder> copy() const = 0;
  virtual std::unique_ptr<AnyModulePlaceholder> clone(
      const std::optional<Device>& device) const = 0;
};

template <class M, class Self> struct AnyModuleBase : AnyModulePlaceholder {
  explicit AnyModuleBase(std::shared_ptr<M> m) : module(std::move(m)) {}
  std::shared_ptr<Module> ptr() const override { return module; }
  const std::type_info& type() const override { return typeid(M); }
  std::unique_ptr<AnyModulePlaceholder> copy() const override {
    return std::make_unique<Self>(module);
  }
  std::unique_ptr<AnyModulePlaceholder> clone(const std::optional<Device>& device) const override {
    auto made = std::dynamic_pointer_cast<M>(static_cast<const Module&>(*module).clone(device));
    if (!made) wrong_module(typeid(Module), typeid(M));
    return std::make_unique<Self>(std::move(made));
  }
  std::shared_ptr<M> module;
};

/// A module with one forward() that is no template.
template <class M, class Result, class... Args>
struct PlainModule final : AnyModuleBase<M, PlainModule<M, Result, Args...>> {
  static_assert(!std::is_void<Result>::value,
                "AnyModule cannot store modules that return void (you can return a dummy value)");
  static_assert((... && !(std::is_lvalue_reference<Args>::value &&
                          !std::is_const<std::remove_reference_t<Args>>::value)),
                "modules stored inside AnyModule must not take references: use pointers instead");
  using AnyModuleBase<M, PlainModule>::AnyModuleBase;
  static constexpr bool kMapsTensor = sizeof...(Args) == 1 &&
                                      std::is_same<std::decay_t<Result>, Tensor>::value &&
                                      (... && is_tensor<Args>::value);

  AnyValue forward(std::vector<AnyValue>&& arguments) override {
    return invoke(ForwardDefaults::complete(*this->module, std::move(arguments), sizeof...(Args)),
                  std::index_sequence_for<Args...>());
  }
  bool maps_tensor() const override { return kMapsTensor; }
  Tensor map_tensor(Tensor&& input) override {
    if constexpr (kMapsTensor) return call(*this->module, std::move(input));
    else return forward_boxed(std::move(input));
  }

 private:
  Tensor forward_boxed(Tensor&& input) {
    std::vector<AnyValue> arguments;
    arguments.emplace_back(std::move(input));
    return forward(std::move(arguments)).template get<Tensor>();
  }
  template <size_t... I>
  AnyValue invoke(std::vector<AnyValue> arguments, std::index_sequence<I...>) {
    (void)arguments;
    return AnyValue(call(*this->module, std::move(get<std::decay_t<Args>>(arguments, I))...));
  }
  template <class T> static T& get(std::vector<AnyValue>& arguments, size_t i) {
    T* value = arguments[i].try_get<T>();
    if (!value) wrong_argument(i, typeid(T), arguments[i].type_info());
    return *value;
  }
};

/// nn::call() on boxed values. Hooks see the arguments that are tensors. They see the tensors of a
/// result that is a Tensor, a vector of tensors, or a tuple of two or three.
RAMET_API AnyValue call_boxed(Module& module, std::vector<AnyValue>&& arguments,
                              const std::function<AnyValue(std::vector<AnyValue>&&)>& forward);

/// For a module with a template as forward(), such as Sequential. The module itself defines how it
/// runs on boxed values (forward_values).
template <class M> struct BoxedModule final : AnyModuleBase<M, BoxedModule<M>> {
  using AnyModuleBase<M, BoxedModule>::AnyModuleBase;
  AnyValue forward(std::vector<AnyValue>&& arguments) override {
    if (RAMET_LIKELY(!static_cast<const Module&>(*this->module).forward_hooks()))
      return this->module->forward_values(std::move(arguments));
    return call_boxed(*this->module, std::move(arguments), [this](std::vector<AnyValue>&& values) {
      return this->module->forward_values(std::move(values));
    });
  }
  bool maps_tensor() const override { return this->module->maps_tensor(); }
  Tensor map_tensor(Tensor&& input) override { return call(*this->module, std::move(input)); }
};

template <class M, class Class, class Result, class... Args>
std::unique_ptr<AnyModulePlaceholder> make_plain(std::shared_ptr<M> module,
                                                 Result (Class::*)(Args...)) {
  return std::make_unique<PlainModule<M, Result, Args...>>(std::move(module));
}
template <class M, class Class, class Result, class... Args>
std::unique_ptr<AnyModulePlaceholder> make_plain(std::shared_ptr<M> module,
                                                 Result (Class::*)(Args...) const) {
  return std::make_unique<PlainModule<M, Result, Args...>>(std::move(module));
}

}  // namespace detail

/// Holds a module of any class; see above.
class AnyModule {
 public:
  /// Empty.
  AnyModule() = default;
  template <class M>
  explicit AnyModule(std::shared_ptr<M> module) : content_(make(std::move(module))) {}
  /// Takes a module by value.
  template <class M, detail::enable_if_module_t<M> = 0>
  explicit AnyModule(M&& module)
      : AnyModule(std::make_shared<std::decay_t<M>>(std::forward<M>(module))) {}
  template <class M>
  explicit AnyModule(const ModuleHolder<M>& module_holder) : AnyModule(module_holder.ptr()) {}
  /// Copies share the module; clone() copies it.
  AnyModule(const AnyModule& other) : content_(other.content_ ? other.content_->copy() : nullptr) {}
  AnyModule& operator=(const AnyModule& other) {
    if (this != &other) content_ = other.content_ ? other.content_->copy() : nullptr;
    return *this;
  }
  AnyModule(AnyModule&&) = default;
  AnyModule& operator=(AnyModule&&) = default;
  template <class M> AnyModule& operator=(std::shared_ptr<M> module) {
    return *this = AnyModule(std::move(module));
  }
  /// A deep copy, on `device` if given.
  AnyModule clone(std::optional<Device> device = std::nullopt) const {
    AnyModule made;
    if (content_) made.content_ = content_->clone(device);
    return made;
  }

  /// forward() of these arguments, whatever it returns.
  template <class... Args> AnyValue any_forward(Args&&... arguments) {
    std::vector<AnyValue> values;
    values.reserve(sizeof...(Args));
    (values.push_back(AnyValue(std::forward<Args>(arguments))), ...);
    return checked("forward").forward(std::move(values));
  }
  /// An Error if the module returns another type than ReturnType.
  template <class ReturnType = Tensor, class... Args> ReturnType forward(Args&&... arguments) {
    return any_forward(std::forward<Args>(arguments)...).template get<ReturnType>();
  }
  /// The same of arguments that are boxed already.
  AnyValue forward_values(std::vector<AnyValue>&& values) {
    return checked("forward").forward(std::move(values));
  }
  /// Is forward a map from one tensor to one? Then map_tensor runs it without boxing.
  bool maps_tensor() const { return content_ && content_->maps_tensor(); }
  /// forward() of one tensor to one tensor.
  Tensor map_tensor(Tensor&& input) { return checked("forward").map_tensor(std::move(input)); }

  /// The module as a T; an Error if it is of another class.
  template <class T, detail::enable_if_module_t<T> = 0> T& get() const { return *ptr<T>(); }
  /// As a holder.
  template <class T, class ContainedType = typename T::ContainedType> T get() const {
    return T(ptr<ContainedType>());
  }
  /// The module; as a T an Error if it is of another class. So is an empty one.
  std::shared_ptr<Module> ptr() const { return checked("ptr").ptr(); }
  template <class T, detail::enable_if_module_t<T> = 0> std::shared_ptr<T> ptr() const {
    const detail::AnyModulePlaceholder& content = checked("get");
    if (content.type() != typeid(T)) detail::wrong_module(content.type(), typeid(T));
    return std::static_pointer_cast<T>(content.ptr());
  }
  /// The module's class; an Error of an empty one.
  const std::type_info& type_info() const { return checked("type_info").type(); }
  /// Does it hold no module?
  bool is_empty() const noexcept { return content_ == nullptr; }

 private:
  template <class M>
  static std::unique_ptr<detail::AnyModulePlaceholder> make(std::shared_ptr<M> module) {
    static_assert(std::is_base_of<Module, M>::value,
                  "can only store objects derived from nn::Module in an AnyModule");
    if constexpr (detail::has_plain_forward<M>::value) {
      return detail::make_plain<M>(std::move(module), &M::forward);
    } else {
      return std::make_unique<detail::BoxedModule<M>>(std::move(module));
    }
  }
  detail::AnyModulePlaceholder& checked(const char* what) const {
    RAMET_CHECK(content_, "AnyModule", "Cannot call ", what, "() on an empty AnyModule");
    return *content_;
  }
  std::unique_ptr<detail::AnyModulePlaceholder> content_;
};

/// A module and the name it is to have in a Sequential.
class NamedAnyModule {
 public:
  template <class M>
  NamedAnyModule(std::string name, std::shared_ptr<M> module)
      : NamedAnyModule(std::move(name), AnyModule(std::move(module))) {}
  template <class M, detail::enable_if_module_t<M> = 0>
  NamedAnyModule(std::string name, M&& module)
      : NamedAnyModule(std::move(name), AnyModule(std::forward<M>(module))) {}
  template <class M>
  NamedAnyModule(std::string name, const ModuleHolder<M>& module_holder)
      : NamedAnyModule(std::move(name), AnyModule(module_holder)) {}
  NamedAnyModule(std::string name, AnyModule any_module)
      : name_(std::move(name)), module_(std::move(any_module)) {}

  /// The two:
  const std::string& name() const noexcept { return name_; }
  AnyModule& module() noexcept { return module_; }
  const AnyModule& module() const noexcept { return module_; }

 private:
  std::string name_;
  AnyModule module_;
};

namespace detail {
using DefaultArgs = ArrayRef<std::pair<unsigned int, AnyValue>>;
inline unsigned int required_args(DefaultArgs defaults) { return defaults.begin()->first; }
RAMET_API std::vector<AnyValue> with_defaults(std::vector<AnyValue>&& arguments,
                                              DefaultArgs defaults);
}  // namespace detail

}  // namespace ramet::nn

/// Stands in a module class that is used in AnyModule and Sequential. It says which arguments of
/// forward have defaults, as pairs of position and value in ascending order:
/// `RAMET_FORWARD_HAS_DEFAULT_ARGS({1, nn::AnyValue(Tensor())})`.
#define RAMET_FORWARD_HAS_DEFAULT_ARGS(...)                                          \
  bool _forward_has_default_args() override { return true; }                         \
  unsigned int _forward_num_required_args() override {                               \
    const std::pair<unsigned int, ::ramet::nn::AnyValue> defaults[] = {__VA_ARGS__}; \
    return ::ramet::nn::detail::required_args(defaults);                             \
  }                                                                                  \
  std::vector<::ramet::nn::AnyValue> _forward_populate_default_args(                 \
      std::vector<::ramet::nn::AnyValue>&& arguments) override {                     \
    const std::pair<unsigned int, ::ramet::nn::AnyValue> defaults[] = {__VA_ARGS__}; \
    return ::ramet::nn::detail::with_defaults(std::move(arguments), defaults);       \
  }
/// The same in two parts, for the class and for its .cc: programs that include the class do not
/// compile it.
#define RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE()                       \
  bool _forward_has_default_args() override { return true; }         \
  unsigned int _forward_num_required_args() override;                \
  std::vector<::ramet::nn::AnyValue> _forward_populate_default_args( \
      std::vector<::ramet::nn::AnyValue>&& arguments) override
/// The other part, for the .cc.
#define RAMET_DEFINE_FORWARD_DEFAULT_ARGS(Class, ...)                                \
  unsigned int Class::_forward_num_required_args() {                                 \
    const std::pair<unsigned int, ::ramet::nn::AnyValue> defaults[] = {__VA_ARGS__}; \
    return ::ramet::nn::detail::required_args(defaults);                             \
  }                                                                                  \
  std::vector<::ramet::nn::AnyValue> Class::_forward_populate_default_args(          \
      std::vector<::ramet::nn::AnyValue>&& arguments) {                              \
    const std::pair<unsigned int, ::ramet::nn::AnyValue> defaults[] = {__VA_ARGS__}; \
    return ::ramet::nn::detail::with_defaults(std::move(arguments), defaults);       \
  }
