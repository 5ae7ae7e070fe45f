// Value: an argument list or a result of a type that the overridable steps of a DataParallel need
// not know.
#pragma once
#include <memory>
#include <typeinfo>

#include "nn/module/any_value.h"
#include "parallel/apply/containers.h"

namespace ramet {
namespace nn {
namespace parallel {

/// Holds one value of any copyable type, and can cut and join it (parallel/apply/containers.h).
class Value {
 public:
  Value() = default;
  template <class T, std::enable_if_t<!std::is_same<std::decay_t<T>, Value>::value, int> = 0>
  explicit Value(T value) : box_(std::make_shared<Of<T>>(std::move(value))) {}

  /// Does it hold a value?
  bool defined() const { return box_ != nullptr; }
  /// An Error if the value is of another type.
  template <class T> T& get() const {
    RAMET_CHECK(box_ && box_->type() == typeid(T), "Value", "got ",
                box_ ? nn::detail::type_name(box_->type()) : std::string("nothing"), ", expected ",
                nn::detail::type_name(typeid(T)));
    return *static_cast<T*>(box_->address());
  }
  /// Spread<T>::measure of the value.
  void measure(Extent& extent, const std::string& path) const { box_->measure(extent, path); }
  /// One Value of type Spread<T>::Part for each replica.
  std::vector<Value> scatter(const ScatterPlan& plan) const { return box_->scatter(plan); }
  /// Joins Values of one type T into a Value of type Join<T>::Whole. The parts are consumed.
  static Value gather(const std::vector<Value>& parts, const GatherPlan& plan) {
    RAMET_CHECK(!parts.empty() && parts[0].defined(), "gather", "got no results to gather");
    return parts[0].box_->gather(parts, plan);
  }

 private:
  struct Box {
    virtual ~Box() = default;
    virtual const std::type_info& type() const = 0;
    virtual void* address() = 0;
    virtual void measure(Extent& extent, const std::string& path) const = 0;
    virtual std::vector<Value> scatter(const ScatterPlan& plan) const = 0;
    virtual Value gather(const std::vector<Value>& parts, const GatherPlan& plan) const = 0;
  };
  template <class T> struct Of final : Box {
    T value;
    explicit Of(T v) : value(std::move(v)) {}
    const std::type_info& type() const override { return typeid(T); }
    void* address() override { return &value; }
    void measure(Extent& extent, const std::string& path) const override {
      Spread<T>::measure(value, extent, path);
    }
    std::vector<Value> scatter(const ScatterPlan& plan) const override {
      std::vector<Value> out;
      for (auto& part : Spread<T>::parts(value, plan, How::scatter))
        out.emplace_back(std::move(part));
      return out;
    }
    Value gather(const std::vector<Value>& parts, const GatherPlan& plan) const override {
      std::vector<T> values;
      for (const Value& p : parts) values.push_back(std::move(p.get<T>()));
      Value whole;
      whole.box_ =
          std::make_shared<Result<typename Join<T>::Whole>>(Join<T>::whole(values, plan, "result"));
      return whole;
    }
  };
  // A joined result is not cut or joined again: otherwise lists of lists would nest without end.
  template <class T> struct Result final : Box {
    T value;
    explicit Result(T v) : value(std::move(v)) {}
    const std::type_info& type() const override { return typeid(T); }
    void* address() override { return &value; }
    void measure(Extent&, const std::string&) const override {}
    std::vector<Value> scatter(const ScatterPlan&) const override {
      fail("Value", "a gathered result cannot be scattered");
    }
    Value gather(const std::vector<Value>&, const GatherPlan&) const override {
      fail("Value", "a gathered result cannot be gathered");
    }
  };
  std::shared_ptr<Box> box_;
};

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
