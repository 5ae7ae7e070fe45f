// The types of TorchScript: of values, of parameters in schemas, and of a program's variables.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autograd/ivalue.h"

namespace ramet::script {

class Type;
/// Types are immutable and shared. Two equal types may be two objects: compare with same().
using TypePtr = std::shared_ptr<const Type>;

/// What the language knows of a class, interface or enumeration: nn/script defines it.
class ClassInfo;
/// Does a class, or another interface, have all methods of an interface?
using Implements = bool (*)(const ClassInfo& type, const ClassInfo& interface);

/// A type. Lists, optionals and futures have one element type, dictionaries a key and a value,
/// tuples and unions any number.
class Type {
 public:
  enum class Kind : uint8_t {
    kAny,
    kNone,
    kTensor,
    kInt,
    kFloat,
    kBool,
    kNumber,  // Scalar: an int, a float or a bool
    kString,
    kDevice,
    kGenerator,
    kList,
    kDict,
    kTuple,  // a NamedTuple has a name and names of fields, too
    kOptional,
    kUnion,
    kFuture,
    kClass,      // modules and plain classes
    kInterface,  // any class with its methods
    kEnum,
    kVariable,  // of a schema: "t" in append(t[] self, t el)
  };

  Kind kind() const { return kind_; }
  const std::vector<TypePtr>& elements() const { return elements_; }
  const TypePtr& element(size_t i = 0) const { return elements_.at(i); }
  /// Of classes, interfaces, enumerations, NamedTuples ("__torch__.net.Point") and variables ("t").
  const std::string& name() const { return name_; }
  /// Of a NamedTuple.
  const std::vector<std::string>& fields() const { return fields_; }
  /// Of a class, interface or enumeration. The archive's compilation unit owns it.
  ClassInfo* info() const { return info_; }
  Implements implements() const { return implements_; }

  /// As PyTorch's annotations: "Optional[List[Tensor]]".
  std::string text() const;

  /// The types without elements:
  static const TypePtr& of(Kind kind);
  static TypePtr list(TypePtr element);
  static TypePtr dict(TypePtr key, TypePtr value);
  static TypePtr tuple(std::vector<TypePtr> elements);
  static TypePtr named_tuple(std::string name, std::vector<std::string> fields,
                             std::vector<TypePtr> elements);
  /// Optional[None] and Optional[Optional[T]] become None and Optional[T].
  static TypePtr optional(TypePtr element);
  /// Flat, without duplicates. With None and one other type it is an optional.
  static TypePtr union_of(std::vector<TypePtr> elements);
  static TypePtr future(TypePtr element);
  static TypePtr class_of(std::string name, ClassInfo* info);
  /// `implements` says whether a class has the methods; without it every class is a subtype.
  static TypePtr interface_of(std::string name, ClassInfo* info, Implements implements = nullptr);
  static TypePtr enum_of(std::string name, ClassInfo* info);
  static TypePtr variable(std::string name);

 private:
  Type(Kind kind, std::vector<TypePtr> elements, std::string name, std::vector<std::string> fields,
       ClassInfo* info);
  Kind kind_;
  std::vector<TypePtr> elements_;
  std::string name_;
  std::vector<std::string> fields_;
  ClassInfo* info_ = nullptr;
  Implements implements_ = nullptr;
};

/// Are they the same type?
bool same(const TypePtr& a, const TypePtr& b);
/// May a value of type `a` be used, unchanged, where `b` is expected? Tensor is no subtype of a
/// number. Lists and dictionaries are invariant.
bool is_subtype(const TypePtr& a, const TypePtr& b);
/// The least type that has both as subtypes (of an if's two branches); null where there is none but
/// Any.
TypePtr unify(const TypePtr& a, const TypePtr& b);

}  // namespace ramet::script
