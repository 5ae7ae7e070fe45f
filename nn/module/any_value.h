// AnyValue: one value of any copyable type, read back by its exact type.
#pragma once
#include <memory>
#include <typeinfo>

#include "runtime/base/error.h"

namespace ramet {
namespace nn {

namespace detail {
/// "ramet::nn::LinearImpl", as nn/module/class_name.h calls it.
RAMET_API std::string type_name(const std::type_info& type);
}  // namespace detail

class AnyValue {
 public:
  AnyValue(AnyValue&&) = default;
  AnyValue& operator=(AnyValue&&) = default;
  AnyValue(const AnyValue& other) : content_(other.content_ ? other.content_->clone() : nullptr) {}
  AnyValue& operator=(const AnyValue& other) { return *this = AnyValue(other); }
  ~AnyValue() = default;
  /// Stores a copy of the decayed type.
  template <class T, std::enable_if_t<!std::is_same<std::decay_t<T>, AnyValue>::value, int> = 0>
  explicit AnyValue(T&& value)
      : content_(std::make_unique<Holder<std::decay_t<T>>>(std::forward<T>(value))) {}

  /// Null if the value is of another type.
  template <class T> T* try_get() {
    static_assert(std::is_same<T, std::decay_t<T>>::value,
                  "AnyValue stores decayed types: no reference, no array, no const");
    return type_info() == typeid(T) ? &static_cast<Holder<T>&>(*content_).value : nullptr;
  }
  /// An Error if the value is of another type.
  template <class T> T get() {
    T* value = try_get<T>();
    RAMET_CHECK(value, "AnyValue", "Attempted to cast AnyValue to ", detail::type_name(typeid(T)),
                ", but its actual type is ", detail::type_name(type_info()));
    return *value;
  }
  /// typeid(void) where the value was moved away.
  const std::type_info& type_info() const noexcept {
    return content_ ? *content_->type : typeid(void);
  }

 private:
  struct Placeholder {
    explicit Placeholder(const std::type_info& t) noexcept : type(&t) {}
    virtual ~Placeholder() = default;
    virtual std::unique_ptr<Placeholder> clone() const = 0;
    const std::type_info* type;
  };
  template <class T> struct Holder final : Placeholder {
    template <class U> explicit Holder(U&& v) : Placeholder(typeid(T)), value(std::forward<U>(v)) {}
    std::unique_ptr<Placeholder> clone() const override { return std::make_unique<Holder>(value); }
    T value;
  };
  std::unique_ptr<Placeholder> content_;
};

}  // namespace nn
}  // namespace ramet
