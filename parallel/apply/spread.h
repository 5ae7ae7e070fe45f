// Spread<T>: cuts an argument of type T into the parts of the replicas, by the rules of
// parallel/apply/containers.h.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nn/module/ordered_dict.h"
#include "parallel/apply/containers.h"

namespace ramet {
namespace nn {
namespace parallel {

/// Does each replica get a piece, or the whole?
enum class How : uint8_t { scatter, broadcast };

/// Spread<T>::Part is the type of a replica's part of a T.
template <class T, class = void> struct Spread {
  using Part = T;
  /// Reports each tensor in the value to `extent`.
  static void measure(const T&, Extent&, const std::string&) {}
  /// The parts, one for each replica.
  static std::vector<T> parts(const T& value, const ScatterPlan& plan, How) {
    return std::vector<T>(plan.devices.size(), value);
  }
};

template <> struct Spread<Tensor> {
  using Part = Tensor;
  static void measure(const Tensor& t, Extent& e, const std::string& path) {
    if (t.defined()) e.tensor(t, path);
  }
  static std::vector<Tensor> parts(const Tensor& t, const ScatterPlan& plan, How how) {
    return how == How::scatter ? detail::scatter_tensor(t, plan)
                               : detail::broadcast_tensor(t, plan);
  }
};

template <class T> struct Spread<std::optional<T>> {
  using Part = std::optional<typename Spread<T>::Part>;
  static void measure(const std::optional<T>& v, Extent& e, const std::string& path) {
    if (v) Spread<T>::measure(*v, e, path);
  }
  static std::vector<Part> parts(const std::optional<T>& v, const ScatterPlan& plan, How how) {
    std::vector<Part> out(plan.devices.size());
    if (!v) return out;
    auto each = Spread<T>::parts(*v, plan, how);
    for (size_t r = 0; r < out.size(); ++r) out[r] = std::move(each[r]);
    return out;
  }
};

template <class T> struct Spread<std::vector<T>> {
  using Part = std::vector<typename Spread<T>::Part>;
  static void measure(const std::vector<T>& v, Extent& e, const std::string& path) {
    for (size_t i = 0; i < v.size(); ++i) Spread<T>::measure(v[i], e, detail::at(path, i));
  }
  static std::vector<Part> parts(const std::vector<T>& v, const ScatterPlan& plan, How how) {
    std::vector<Part> out(plan.devices.size());
    for (const auto& item : v) {
      auto each = Spread<T>::parts(item, plan, how);
      for (size_t r = 0; r < out.size(); ++r) out[r].push_back(std::move(each[r]));
    }
    return out;
  }
};

namespace detail {
// Spreads the members of a tuple-like value (by reference) into members of `out[r]`, reached by
// `member(out[r], index)`.
template <class Tuple, size_t... I>
void measure_members(const Tuple& t, Extent& e, const std::string& path, const char* names,
                     std::index_sequence<I...>) {
  (Spread<std::decay_t<std::tuple_element_t<I, Tuple>>>::measure(
       std::get<I>(t), e, names ? path + "." + field_name(names, I) : at(path, I)),
   ...);
}
template <size_t I, class Value, class Out, class Member>
void spread_member(const Value& v, const ScatterPlan& plan, How how, std::vector<Out>& out,
                   Member&& member) {
  auto each = Spread<Value>::parts(v, plan, how);
  for (size_t r = 0; r < out.size(); ++r) member(out[r]) = std::move(each[r]);
}
}  // namespace detail

template <class... T> struct Spread<std::tuple<T...>> {
  using Part = std::tuple<typename Spread<T>::Part...>;
  static void measure(const std::tuple<T...>& v, Extent& e, const std::string& path) {
    detail::measure_members(v, e, path, nullptr, std::index_sequence_for<T...>());
  }
  static std::vector<Part> parts(const std::tuple<T...>& v, const ScatterPlan& plan, How how) {
    std::tuple<std::vector<typename Spread<T>::Part>...> columns =
        spread(v, plan, how, std::index_sequence_for<T...>());
    std::vector<Part> out;
    for (size_t r = 0; r < plan.devices.size(); ++r)
      out.push_back(row(columns, r, std::index_sequence_for<T...>()));
    return out;
  }

 private:
  template <size_t... I>
  static auto spread(const std::tuple<T...>& v, const ScatterPlan& plan, How how,
                     std::index_sequence<I...>) {
    (void)v, (void)plan, (void)how;
    return std::tuple<std::vector<typename Spread<T>::Part>...>{
        Spread<T>::parts(std::get<I>(v), plan, how)...};
  }
  template <class Columns, size_t... I>
  static Part row(Columns& columns, size_t r, std::index_sequence<I...>) {
    (void)columns, (void)r;
    return Part{std::move(std::get<I>(columns)[r])...};
  }
};

template <class A, class B> struct Spread<std::pair<A, B>> {
  using Part = std::pair<typename Spread<A>::Part, typename Spread<B>::Part>;
  static void measure(const std::pair<A, B>& v, Extent& e, const std::string& path) {
    Spread<A>::measure(v.first, e, path + ".first");
    Spread<B>::measure(v.second, e, path + ".second");
  }
  static std::vector<Part> parts(const std::pair<A, B>& v, const ScatterPlan& plan, How how) {
    auto a = Spread<A>::parts(v.first, plan, how);
    auto b = Spread<B>::parts(v.second, plan, how);
    std::vector<Part> out;
    for (size_t r = 0; r < a.size(); ++r) out.emplace_back(std::move(a[r]), std::move(b[r]));
    return out;
  }
};

template <class T, size_t N> struct Spread<std::array<T, N>> {
  using Part = std::array<typename Spread<T>::Part, N>;
  static void measure(const std::array<T, N>& v, Extent& e, const std::string& path) {
    for (size_t i = 0; i < N; ++i) Spread<T>::measure(v[i], e, detail::at(path, i));
  }
  static std::vector<Part> parts(const std::array<T, N>& v, const ScatterPlan& plan, How how) {
    std::vector<Part> out(plan.devices.size());
    for (size_t i = 0; i < N; ++i) {
      auto each = Spread<T>::parts(v[i], plan, how);
      for (size_t r = 0; r < out.size(); ++r) out[r][i] = std::move(each[r]);
    }
    return out;
  }
};

namespace detail {
template <class Map, class PartMap, class V> struct SpreadMap {
  using Part = PartMap;
  static void measure(const Map& v, Extent& e, const std::string& path) {
    for (const auto& [key, value] : v) Spread<V>::measure(value, e, path + key_text(key));
  }
  static std::vector<Part> parts(const Map& v, const ScatterPlan& plan, How how) {
    std::vector<Part> out(plan.devices.size());
    for (const auto& [key, value] : v) {
      auto each = Spread<V>::parts(value, plan, how);
      for (size_t r = 0; r < out.size(); ++r) out[r].emplace(key, std::move(each[r]));
    }
    return out;
  }
};
}  // namespace detail

template <class K, class V>
struct Spread<std::map<K, V>>
    : detail::SpreadMap<std::map<K, V>, std::map<K, typename Spread<V>::Part>, V> {};
template <class K, class V>
struct Spread<std::unordered_map<K, V>>
    : detail::SpreadMap<std::unordered_map<K, V>, std::unordered_map<K, typename Spread<V>::Part>,
                        V> {};

template <class K, class V> struct Spread<OrderedDict<K, V>> {
  using Part = OrderedDict<K, typename Spread<V>::Part>;
  static void measure(const OrderedDict<K, V>& v, Extent& e, const std::string& path) {
    for (const auto& item : v)
      Spread<V>::measure(item.value(), e, path + detail::key_text(item.key()));
  }
  static std::vector<Part> parts(const OrderedDict<K, V>& v, const ScatterPlan& plan, How how) {
    std::vector<Part> out(plan.devices.size(), Part(v.key_description()));
    for (const auto& item : v) {
      auto each = Spread<V>::parts(item.value(), plan, how);
      for (size_t r = 0; r < out.size(); ++r) out[r].insert(item.key(), std::move(each[r]));
    }
    return out;
  }
};

/// A struct with RAMET_FIELDS: each replica gets a copy with its members replaced by their parts.
template <class T> struct Spread<T, std::enable_if_t<detail::HasFields<T>::value>> {
  using Part = T;
  static void measure(const T& v, Extent& e, const std::string& path) {
    const auto fields = v.ramet_fields();
    detail::measure_members(fields, e, path, T::ramet_field_names(),
                            std::make_index_sequence<std::tuple_size<decltype(fields)>::value>());
  }
  static std::vector<T> parts(const T& v, const ScatterPlan& plan, How how) {
    std::vector<T> out(plan.devices.size(), v);
    const auto fields = v.ramet_fields();
    spread(fields, plan, how, out,
           std::make_index_sequence<std::tuple_size<decltype(fields)>::value>());
    return out;
  }

 private:
  template <class Fields, size_t... I>
  static void spread(const Fields& fields, const ScatterPlan& plan, How how, std::vector<T>& out,
                     std::index_sequence<I...>) {
    (detail::spread_member<I>(
         std::get<I>(fields), plan, how, out,
         [](T & t) -> auto& { return std::get<I>(t.ramet_fields()); }),
     ...);
  }
};

template <class T> struct Spread<Broadcast<T>> {
  using Part = typename Spread<T>::Part;
  static void measure(const Broadcast<T>&, Extent&, const std::string&) {}
  static std::vector<Part> parts(const Broadcast<T>& v, const ScatterPlan& plan, How) {
    return Spread<T>::parts(v.value, plan, How::broadcast);
  }
};
template <class T> struct Spread<NoScatter<T>> {
  using Part = T;
  static void measure(const NoScatter<T>&, Extent&, const std::string&) {}
  static std::vector<T> parts(const NoScatter<T>& v, const ScatterPlan& plan, How) {
    return std::vector<T>(plan.devices.size(), v.value);
  }
};
template <class T> struct Spread<PerReplica<T>> {
  using Part = typename Spread<T>::Part;
  static void measure(const PerReplica<T>& v, Extent& e, const std::string& path) {
    e.per_replica(v.values.size(), path);
  }
  static std::vector<Part> parts(const PerReplica<T>& v, const ScatterPlan& plan, How) {
    std::vector<Part> out;
    for (size_t r = 0; r < plan.devices.size(); ++r) {
      ScatterPlan alone;
      alone.devices = {plan.devices[r]};
      out.push_back(std::move(Spread<T>::parts(v.values[r], alone, How::broadcast)[0]));
    }
    return out;
  }
};

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
