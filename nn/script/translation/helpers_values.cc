// Functions of values of any type, of tensors as lists, and of copies that written code calls.
#include "nn/script/translation/translation_internal.h"

namespace ramet::script {

std::vector<Helper> helpers_of_values() {
  return {
      {"as_any", R"(/// A value as one of any type. A list or dictionary becomes another one.
inline ramet::IValue as_any(ramet::IValue value) { return value; }
template <class T> ramet::IValue as_any(const std::optional<T>& value);
template <class... T> ramet::IValue as_any(const std::tuple<T...>& values);
template <class K, class V> ramet::IValue as_any(const ramet::Dict<K, V>& dict);
template <class T> ramet::IValue as_any(const ramet::List<T>& list);
template <class T> ramet::IValue as_any(const std::vector<T>& list) {
  if constexpr (std::is_constructible_v<ramet::IValue, ramet::List<T>>) {
    return ramet::List<T>(list);
  } else {
    ramet::IValue::GenericList made;
    for (const auto& item : list) made.push_back(as_any(item));
    return made;
  }
}
template <class T> ramet::IValue as_any(const ramet::List<T>& list) {
  if constexpr (std::is_constructible_v<ramet::IValue, ramet::List<T>>) return list;
  else return as_any(list.vec());
}
template <class T> ramet::IValue as_any(const std::optional<T>& value) {
  return value ? as_any(*value) : ramet::IValue();
}
template <class K, class V> ramet::IValue as_any(const ramet::Dict<K, V>& dict) {
  ramet::IValue::GenericDict made;
  for (const auto& entry : dict) made.insert_or_assign(entry.key(), as_any(entry.value()));
  return made;
}
template <class... T> ramet::IValue as_any(const std::tuple<T...>& values) {
  return std::apply(
      [](const auto&... item) {
        return ramet::IValue(ramet::IValue::Tuple::create({as_any(item)...}));
      },
      values);
}
)"},
      {"From", R"(/// A value of any type as one of a known type.
template <class T> struct From {
  static T of(const ramet::IValue& value) { return value.to<T>(); }
};
template <class T> struct From<std::optional<T>> {
  static std::optional<T> of(const ramet::IValue& value) {
    return value.isNone() ? std::nullopt : std::optional<T>(From<T>::of(value));
  }
};
template <class T> struct From<std::vector<T>> {
  static std::vector<T> of(const ramet::IValue& value) {
    const ramet::IValue::GenericList list = value.toList();
    std::vector<T> made;
    for (const ramet::IValue& item : list.vec()) made.push_back(From<T>::of(item));
    return made;
  }
};
template <class T> struct From<ramet::List<T>> {
  static ramet::List<T> of(const ramet::IValue& value) {
    if constexpr (std::is_constructible_v<ramet::IValue, ramet::List<T>>)
      return value.to<ramet::List<T>>();
    else return ramet::List<T>(From<std::vector<T>>::of(value));
  }
};
template <class K, class V> struct From<ramet::Dict<K, V>> {
  static ramet::Dict<K, V> of(const ramet::IValue& value) {
    ramet::Dict<K, V> made;
    for (const auto& entry : value.toGenericDict())
      made.insert_or_assign(From<K>::of(entry.key()), From<V>::of(entry.value()));
    return made;
  }
};
template <class... T> struct From<std::tuple<T...>> {
  template <size_t... I>
  static std::tuple<T...> of(const std::vector<ramet::IValue>& items, std::index_sequence<I...>) {
    return {From<T>::of(items.at(I))...};
  }
  static std::tuple<T...> of(const ramet::IValue& value) {
    return of(value.toTupleRef().elements(), std::index_sequence_for<T...>());
  }
};
)"},
      {"Listed", R"(/// Python's tensor.tolist().
template <class T> struct Listed {
  static T of(const ramet::Tensor& t) {
    if (t.dim() != 0) throw ramet::Error("[tolist] got a tensor of more dimensions than the lists");
    return t.item<T>();
  }
};
template <class List> struct ListedItems {
  static List of(const ramet::Tensor& t) {
    if (t.dim() == 0) throw ramet::Error("[tolist] got a tensor of fewer dimensions than the lists");
    List made;
    for (int64_t i = 0; i < t.size(0); ++i)
      made.push_back(Listed<typename List::value_type>::of(t.select(0, i)));
    return made;
  }
};
template <class T> struct Listed<std::vector<T>> : ListedItems<std::vector<T>> {};
template <class T> struct Listed<ramet::List<T>> : ListedItems<ramet::List<T>> {};
)"},
      {"own",
       R"(/// A value with lists, dictionaries and objects of its own: what a clone of a module holds.
template <class T> T own(const T& value) { return value; }
inline ramet::Tensor own(const ramet::Tensor& t) {
  return t.defined() ? t.detach().clone().set_requires_grad(t.requires_grad()) : t;
}
template <class T> std::shared_ptr<T> own(const std::shared_ptr<T>& object) {
  return object ? object->copy() : object;
}
template <class T> std::vector<T> own(const std::vector<T>& list);
template <class T> ramet::List<T> own(const ramet::List<T>& list);
template <class T> std::optional<T> own(const std::optional<T>& value);
template <class K, class V> ramet::Dict<K, V> own(const ramet::Dict<K, V>& dict);
template <class... T> std::tuple<T...> own(const std::tuple<T...>& values) {
  return std::apply([](const auto&... item) { return std::tuple<T...>{own(item)...}; }, values);
}
template <class T> std::vector<T> own(const std::vector<T>& list) {
  std::vector<T> made;
  for (const T& item : list) made.push_back(own(item));
  return made;
}
template <class T> std::optional<T> own(const std::optional<T>& value) {
  return value ? std::optional<T>(own(*value)) : value;
}
template <class T> ramet::List<T> own(const ramet::List<T>& list) {
  return ramet::List<T>(own(list.vec()));
}
template <class K, class V> ramet::Dict<K, V> own(const ramet::Dict<K, V>& dict) {
  ramet::Dict<K, V> made;
  for (const auto& entry : dict) made.insert_or_assign(entry.key(), own(entry.value()));
  return made;
}
)"},
  };
}

}  // namespace ramet::script
