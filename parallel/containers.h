// How arguments of a data-parallel call are cut, and results joined. By type: a tensor is scattered
// and gathered; an optional, vector, array, pair, tuple, map, OrderedDict or a struct with
// RAMET_FIELDS goes member by member; everything else is copied to every replica (what a shared_ptr
// points to is shared), and as a result becomes a list of one value a replica.
//
//   struct Batch {
//     Tensor image, label;
//     RAMET_FIELDS(image, label)
//   };
//
// All scattered tensors of one call have the same extent along the dimension, unless an argument is
// wrapped. Undefined tensors stay undefined. A type of the user's own is joined by `static Whole
// gather(std::vector<T> parts)` where it has one.
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

#include "nn/ordered_dict.h"
#include "parallel/broadcast_reduce.h"
#include "parallel/scatter_gather.h"

/// In a struct: its members, for data-parallel arguments and results.
#define RAMET_FIELDS(...)                                     \
  auto ramet_fields() { return std::tie(__VA_ARGS__); }       \
  auto ramet_fields() const { return std::tie(__VA_ARGS__); } \
  static const char* ramet_field_names() { return #__VA_ARGS__; }

namespace ramet {
namespace nn {
namespace parallel {

/// An argument of which every replica gets the whole, tensors on its device. Gradients are added
/// up.
template <class T> struct Broadcast {
  T value;
  explicit Broadcast(T v) : value(std::move(v)) {}
};
/// An argument that every replica gets as it is, tensors where they are.
template <class T> struct NoScatter {
  T value;
  explicit NoScatter(T v) : value(std::move(v)) {}
};
/// An argument of one value a replica, given by the caller. Tensors are moved to the replica's
/// device.
template <class T> struct PerReplica {
  std::vector<T> values;
  explicit PerReplica(std::vector<T> v) : values(std::move(v)) {}
};

/// What a 0-dim tensor result becomes with several replicas: a vector, their mean, or their mean
/// weighted by the sizes of the pieces (the true mean where each is the mean over its piece).
enum class Scalars : uint8_t { stack, mean, weighted_mean };

/// Where the pieces go.
struct ScatterPlan {
  std::vector<Device> devices;  // of the replicas that take part
  std::vector<int64_t> sizes;   // of the pieces along dim; empty if nothing is scattered
  int64_t dim = 0;
  ramet::parallel::Alias alias = ramet::parallel::Alias::view;
};
struct GatherPlan {
  Device device = Device(kCPU, 0);
  int64_t dim = 0;
  Scalars scalars = Scalars::stack;
  std::vector<int64_t> sizes;  // of the pieces that went in: weights
  bool keep_scalars = false;   // one device: a 0-dim result stays 0-dim
};

/// Finds the extent that all scattered tensors share.
class RAMET_API Extent {
 public:
  explicit Extent(int64_t dim) : dim_(dim) {}
  /// An Error naming both paths if it differs from an earlier one's.
  void tensor(const Tensor& t, const std::string& path);
  void per_replica(size_t values, const std::string& path);
  bool scattered() const { return found_; }
  int64_t size() const { return size_; }
  /// Number of values of PerReplica arguments; 0 without one.
  size_t replicas() const { return replicas_; }
  const std::string& replicas_path() const { return replicas_path_; }

 private:
  int64_t dim_, size_ = 0;
  bool found_ = false;
  std::string path_;
  size_t replicas_ = 0;
  std::string replicas_path_;
};

namespace detail {
RAMET_API std::vector<Tensor> scatter_tensor(const Tensor& t, const ScatterPlan& plan);
RAMET_API std::vector<Tensor> broadcast_tensor(const Tensor& t, const ScatterPlan& plan);
RAMET_API Tensor gather_tensors(const std::vector<Tensor>& parts, const GatherPlan& plan,
                                const std::string& path);
/// Name number `index` of "a, b, c".
RAMET_API std::string field_name(const char* names, size_t index);
RAMET_API void check_keys(const std::string& path, size_t replica, size_t got, size_t expected);
[[noreturn]] RAMET_API void missing_key(const std::string& path, size_t replica,
                                        const std::string& key);

template <class T, class = void> struct HasFields : std::false_type {};
template <class T>
struct HasFields<T, std::void_t<decltype(std::declval<T&>().ramet_fields())>> : std::true_type {};
template <class T, class = void> struct HasGather : std::false_type {};
template <class T>
struct HasGather<T, std::void_t<decltype(T::gather(std::declval<std::vector<T>>()))>>
    : std::true_type {};

template <class K> std::string key_text(const K& key) {
  if constexpr (std::is_convertible<const K&, std::string>::value)
    return "['" + std::string(key) + "']";
  else return "[" + ramet::detail::join(key) + "]";
}
inline std::string at(const std::string& path, size_t i) {
  return path + "[" + std::to_string(i) + "]";
}
}  // namespace detail

// ---- scatter ------------------------------------------------------------------------------------

enum class How : uint8_t { scatter, broadcast };

/// Spread<T>::Part is what a replica gets of a T.
template <class T, class = void> struct Spread {
  using Part = T;
  static void measure(const T&, Extent&, const std::string&) {}
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
// The members of a tuple-like value (by reference), spread into members of `out[r]`, reached by
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

// ---- gather -------------------------------------------------------------------------------------

/// Join<T>::Whole is what the replicas' results of type T become together. `parts` is not empty.
template <class T, class = void> struct Join {
  using Whole = std::vector<T>;
  static Whole whole(std::vector<T>& parts, const GatherPlan&, const std::string&) {
    return std::move(parts);
  }
};

template <> struct Join<Tensor> {
  using Whole = Tensor;
  static Tensor whole(std::vector<Tensor>& parts, const GatherPlan& plan, const std::string& path) {
    return detail::gather_tensors(parts, plan, path);
  }
};

template <class T> struct Join<T, std::enable_if_t<detail::HasGather<T>::value>> {
  using Whole = decltype(T::gather(std::declval<std::vector<T>>()));
  static Whole whole(std::vector<T>& parts, const GatherPlan&, const std::string&) {
    return T::gather(std::move(parts));
  }
};

template <class T> struct Join<std::optional<T>> {
  using Whole = std::optional<typename Join<T>::Whole>;
  static Whole whole(std::vector<std::optional<T>>& parts, const GatherPlan& plan,
                     const std::string& path) {
    std::vector<T> present;
    for (size_t r = 0; r < parts.size(); ++r) {
      RAMET_CHECK(parts[r].has_value() == parts[0].has_value(), "gather", path, ": replica ", r,
                  " has ", parts[r] ? "a value" : "none", ", replica 0 has ",
                  parts[0] ? "one" : "none");
      if (parts[r]) present.push_back(std::move(*parts[r]));
    }
    if (present.empty()) return std::nullopt;
    return Join<T>::whole(present, plan, path);
  }
};

template <class T> struct Join<std::vector<T>> {
  using Whole = std::vector<typename Join<T>::Whole>;
  static Whole whole(std::vector<std::vector<T>>& parts, const GatherPlan& plan,
                     const std::string& path) {
    Whole out;
    for (size_t r = 0; r < parts.size(); ++r)
      RAMET_CHECK(parts[r].size() == parts[0].size(), "gather", path, ": replica ", r, " has ",
                  parts[r].size(), " elements, replica 0 has ", parts[0].size());
    for (size_t i = 0; i < parts[0].size(); ++i) {
      std::vector<T> column;
      for (auto& p : parts) column.push_back(std::move(p[i]));
      out.push_back(Join<T>::whole(column, plan, detail::at(path, i)));
    }
    return out;
  }
};

template <class T, size_t N> struct Join<std::array<T, N>> {
  using Whole = std::array<typename Join<T>::Whole, N>;
  static Whole whole(std::vector<std::array<T, N>>& parts, const GatherPlan& plan,
                     const std::string& path) {
    Whole out;
    for (size_t i = 0; i < N; ++i) {
      std::vector<T> column;
      for (auto& p : parts) column.push_back(std::move(p[i]));
      out[i] = Join<T>::whole(column, plan, detail::at(path, i));
    }
    return out;
  }
};

template <class... T> struct Join<std::tuple<T...>> {
  using Whole = std::tuple<typename Join<T>::Whole...>;
  static Whole whole(std::vector<std::tuple<T...>>& parts, const GatherPlan& plan,
                     const std::string& path) {
    return join(parts, plan, path, std::index_sequence_for<T...>());
  }

 private:
  template <size_t I>
  static auto column(std::vector<std::tuple<T...>>& parts, const GatherPlan& plan,
                     const std::string& path) {
    using Item = std::tuple_element_t<I, std::tuple<T...>>;
    std::vector<Item> items;
    for (auto& p : parts) items.push_back(std::move(std::get<I>(p)));
    return Join<Item>::whole(items, plan, detail::at(path, I));
  }
  template <size_t... I>
  static Whole join(std::vector<std::tuple<T...>>& parts, const GatherPlan& plan,
                    const std::string& path, std::index_sequence<I...>) {
    (void)parts, (void)plan, (void)path;
    return Whole{column<I>(parts, plan, path)...};
  }
};

template <class A, class B> struct Join<std::pair<A, B>> {
  using Whole = std::pair<typename Join<A>::Whole, typename Join<B>::Whole>;
  static Whole whole(std::vector<std::pair<A, B>>& parts, const GatherPlan& plan,
                     const std::string& path) {
    std::vector<A> a;
    std::vector<B> b;
    for (auto& p : parts) {
      a.push_back(std::move(p.first));
      b.push_back(std::move(p.second));
    }
    return {Join<A>::whole(a, plan, path + ".first"), Join<B>::whole(b, plan, path + ".second")};
  }
};

namespace detail {
template <class Map, class WholeMap, class V> struct JoinMap {
  using Whole = WholeMap;
  static Whole whole(std::vector<Map>& parts, const GatherPlan& plan, const std::string& path) {
    for (size_t r = 0; r < parts.size(); ++r) check_keys(path, r, parts[r].size(), parts[0].size());
    Whole out;
    for (auto& [key, value] : parts[0]) {
      std::vector<V> column;
      for (size_t r = 0; r < parts.size(); ++r) {
        const auto found = parts[r].find(key);
        if (found == parts[r].end()) missing_key(path, r, key_text(key));
        column.push_back(found->second);
      }
      out.emplace(key, Join<V>::whole(column, plan, path + key_text(key)));
    }
    return out;
  }
};
}  // namespace detail

template <class K, class V>
struct Join<std::map<K, V>>
    : detail::JoinMap<std::map<K, V>, std::map<K, typename Join<V>::Whole>, V> {};
template <class K, class V>
struct Join<std::unordered_map<K, V>>
    : detail::JoinMap<std::unordered_map<K, V>, std::unordered_map<K, typename Join<V>::Whole>, V> {
};

template <class K, class V> struct Join<OrderedDict<K, V>> {
  using Whole = OrderedDict<K, typename Join<V>::Whole>;
  static Whole whole(std::vector<OrderedDict<K, V>>& parts, const GatherPlan& plan,
                     const std::string& path) {
    for (size_t r = 0; r < parts.size(); ++r)
      detail::check_keys(path, r, parts[r].size(), parts[0].size());
    Whole out(parts[0].key_description());
    for (auto& item : parts[0]) {
      std::vector<V> column;
      for (size_t r = 0; r < parts.size(); ++r) {
        V* found = parts[r].find(item.key());
        if (!found) detail::missing_key(path, r, detail::key_text(item.key()));
        column.push_back(*found);
      }
      out.insert(item.key(), Join<V>::whole(column, plan, path + detail::key_text(item.key())));
    }
    return out;
  }
};

/// A struct with RAMET_FIELDS: members whose type stays what it is are joined, others are replica
/// 0's.
template <class T>
struct Join<T, std::enable_if_t<detail::HasFields<T>::value && !detail::HasGather<T>::value>> {
  using Whole = T;
  static T whole(std::vector<T>& parts, const GatherPlan& plan, const std::string& path) {
    T out = parts[0];
    join(out, parts, plan, path,
         std::make_index_sequence<std::tuple_size<decltype(out.ramet_fields())>::value>());
    return out;
  }

 private:
  template <size_t I>
  static void member(T& out, std::vector<T>& parts, const GatherPlan& plan,
                     const std::string& path) {
    using Item = std::decay_t<decltype(std::get<I>(out.ramet_fields()))>;
    if constexpr (std::is_same<typename Join<Item>::Whole, Item>::value) {
      std::vector<Item> column;
      for (T& p : parts) column.push_back(std::get<I>(p.ramet_fields()));
      std::get<I>(out.ramet_fields()) = Join<Item>::whole(
          column, plan, path + "." + detail::field_name(T::ramet_field_names(), I));
    }
  }
  template <size_t... I>
  static void join(T& out, std::vector<T>& parts, const GatherPlan& plan, const std::string& path,
                   std::index_sequence<I...>) {
    (member<I>(out, parts, plan, path), ...);
  }
};

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
