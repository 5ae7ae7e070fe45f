// Join<T>: joins the results of type T of several replicas, by the rules of
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

/// Join<T>::Whole is the joined type of the replicas' results of type T. `parts` is not empty.
template <class T, class = void> struct Join {
  using Whole = std::vector<T>;
  /// See above.
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

/// A struct with RAMET_FIELDS: members with a type that joining does not change are joined. For the
/// others, replica 0's value is taken.
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
