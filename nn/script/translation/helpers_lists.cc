// Functions of lists and dictionaries that written code calls. A list is a std::vector, or a
// ramet::List where the code changes lists of its type.
#include "nn/script/translation/translation_internal.h"

namespace ramet::script {

std::vector<Helper> helpers_of_lists() {
  return {
      {"place", R"(/// The place that a Python index names.
inline size_t place(int64_t index, size_t size) {
  const auto n = static_cast<int64_t>(size);
  if (index < -n || index >= n)
    throw ramet::IndexError("[list] index: got " + std::to_string(index) + ", expected one from " +
                            std::to_string(-n) + " to " + std::to_string(n - 1));
  return static_cast<size_t>(index < 0 ? index + n : index);
}
)"},
      {"item", R"(/// Python's list[i].
template <class List> typename List::value_type item(const List& list, int64_t i) {
  return list[python::place(i, list.size())];
}
)"},
      {"set_item", R"(/// Python's list[i] = item.
template <class T>
void set_item(const ramet::List<T>& list, int64_t i, typename ramet::List<T>::value_type item) {
  list.set(python::place(i, list.size()), std::move(item));
}
)"},
      {"copy", R"(/// A list of its own with the same items.
template <class List> List copy(const List& list) {
  List made;
  for (const auto& item : list) made.push_back(item);
  return made;
}
)"},
      {"replace", R"(/// The items of a list become those.
template <class T> void replace(const ramet::List<T>& list, const std::vector<T>& by) {
  const std::vector<T> items = by;
  list.clear();
  for (const auto& item : items) list.push_back(item);
}
)"},
      {"extend",
       R"(/// Python's list.extend(other), which may be the list itself: the same list, for `+=`.
template <class T>
ramet::List<T> extend(const ramet::List<T>& list, const ramet::List<T>& other) {
  for (const auto& item : std::vector<T>(other.vec())) list.push_back(item);
  return list;
}
)"},
      {"insert", R"(/// Python's list.insert(i, item).
template <class T>
void insert(const ramet::List<T>& list, int64_t i, typename ramet::List<T>::value_type item) {
  const auto size = static_cast<int64_t>(list.size());
  std::vector<T> items = list.vec();
  items.insert(items.begin() + std::clamp<int64_t>(i < 0 ? i + size : i, 0, size),
               std::move(item));
  python::replace(list, items);
}
)"},
      {"pop", R"(/// Python's list.pop(i).
template <class T> T pop(const ramet::List<T>& list, int64_t i) {
  const size_t at = python::place(i, list.size());
  T taken = list.get(at);
  std::vector<T> items = list.vec();
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  python::replace(list, items);
  return taken;
}
)"},
      {"reverse", R"(/// Python's list.reverse().
template <class T> void reverse(const ramet::List<T>& list) {
  python::replace(list, std::vector<T>(list.vec().rbegin(), list.vec().rend()));
}
)"},
      {"slice", R"(/// Python's list[start:end:step].
template <class List>
List slice(const List& list, std::optional<int64_t> start, std::optional<int64_t> end,
           int64_t step) {
  if (step == 0) throw ramet::Error("[slice] got a step of 0, expected another");
  const auto size = static_cast<int64_t>(list.size());
  const auto inside = [&](int64_t x) {
    if (x < 0) x += size;
    return step > 0 ? std::clamp<int64_t>(x, 0, size) : std::clamp<int64_t>(x, -1, size - 1);
  };
  const int64_t first = start ? inside(*start) : step > 0 ? 0 : size - 1;
  const int64_t last = end ? inside(*end) : step > 0 ? size : -1;
  List made;
  for (int64_t i = first; step > 0 ? i < last : i > last;) {
    made.push_back(list[static_cast<size_t>(i)]);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return made;
}
)"},
      {"joined", R"(/// Python's a + b.
template <class List> List joined(const List& a, const List& b) {
  List made;
  for (const auto& item : a) made.push_back(item);
  for (const auto& item : b) made.push_back(item);
  return made;
}
)"},
      {"repeat", R"(/// Python's list * n.
template <class List> List repeat(const List& list, int64_t n) {
  List made;
  for (int64_t i = 0; i < n; ++i)
    for (const auto& item : list) made.push_back(item);
  return made;
}
)"},
      {"range", R"(/// The numbers from 0 to n - 1.
inline std::vector<int64_t> range(int64_t n) {
  std::vector<int64_t> made;
  for (int64_t i = 0; i < n; ++i) made.push_back(i);
  return made;
}
)"},
      {"equals",
       R"(/// Python's a == b: of lists and tuples item by item, of tensors by their only element.
template <class T> bool equals(const T& a, const T& b) { return a == b; }
inline bool equals(const ramet::Tensor& a, const ramet::Tensor& b) {
  return ramet::eq(a, b).is_nonzero();
}
template <class... T> bool equals(const std::tuple<T...>& a, const std::tuple<T...>& b);
template <class T> bool equals(const ramet::List<T>& a, const ramet::List<T>& b);
template <class T> bool equals(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!equals(static_cast<const T&>(a[i]), static_cast<const T&>(b[i]))) return false;
  return true;
}
template <class T> bool equals(const ramet::List<T>& a, const ramet::List<T>& b) {
  return a.is(b) || equals(a.vec(), b.vec());
}
template <class... T, size_t... I>
bool equals(const std::tuple<T...>& a, const std::tuple<T...>& b, std::index_sequence<I...>) {
  return (equals(std::get<I>(a), std::get<I>(b)) && ...);
}
template <class... T> bool equals(const std::tuple<T...>& a, const std::tuple<T...>& b) {
  return equals(a, b, std::index_sequence_for<T...>());
}
)"},
      {"precedes",
       R"(/// The order of sort(): numbers, texts, tensors of one element, tuples item by item.
template <class T> bool precedes(const T& a, const T& b) { return a < b; }
inline bool precedes(const ramet::Tensor& a, const ramet::Tensor& b) {
  return a.item().toDouble() < b.item().toDouble();
}
template <size_t I = 0, class... T>
bool precedes(const std::tuple<T...>& a, const std::tuple<T...>& b) {
  if constexpr (I == sizeof...(T)) return false;
  else if (!python::equals(std::get<I>(a), std::get<I>(b))) return precedes(std::get<I>(a), std::get<I>(b));
  else return precedes<I + 1>(a, b);
}
)"},
      {"find", R"(/// The place of an item, or -1.
template <class List> int64_t find(const List& list, const typename List::value_type& item) {
  for (size_t i = 0; i < list.size(); ++i)
    if (python::equals(static_cast<const typename List::value_type&>(list[i]), item))
      return static_cast<int64_t>(i);
  return -1;
}
)"},
      {"contains", R"(/// Python's item in list.
template <class List> bool contains(const List& list, const typename List::value_type& item) {
  return python::find(list, item) >= 0;
}
)"},
      {"index", R"(/// Python's list.index(item).
template <class List> int64_t index(const List& list, const typename List::value_type& item) {
  const int64_t at = python::find(list, item);
  if (at < 0) throw ramet::Error("[index] got another value, expected an item of the list");
  return at;
}
)"},
      {"remove", R"(/// Python's list.remove(item).
template <class T>
void remove(const ramet::List<T>& list, const typename ramet::List<T>::value_type& item) {
  python::pop(list, python::index(list, item));
}
)"},
      {"count", R"(/// Python's list.count(item).
template <class List> int64_t count(const List& list, const typename List::value_type& item) {
  int64_t n = 0;
  for (const typename List::value_type& each : list) n += python::equals(each, item) ? 1 : 0;
  return n;
}
)"},
      {"sorted", R"(/// Python's sorted(list): equal items keep their order.
template <class List> List sorted(const List& list, bool reverse = false) {
  std::vector<typename List::value_type> items(list.begin(), list.end());
  std::stable_sort(items.begin(), items.end(), [&](const auto& a, const auto& b) {
    return reverse ? python::precedes(b, a) : python::precedes(a, b);
  });
  List made;
  for (const auto& item : items) made.push_back(item);
  return made;
}
)"},
      {"sort", R"(/// Python's list.sort(reverse).
template <class T> void sort(const ramet::List<T>& list, bool reverse) {
  python::replace(list, python::sorted(list, reverse).vec());
}
)"},
      {"smallest", R"(/// Python's min(list).
template <class List> typename List::value_type smallest(const List& list) {
  if (list.empty()) throw ramet::Error("[min] got an empty list, expected one with items");
  typename List::value_type best = list[0];
  for (const typename List::value_type& item : list)
    if (python::precedes(item, best)) best = item;
  return best;
}
)"},
      {"largest", R"(/// Python's max(list).
template <class List> typename List::value_type largest(const List& list) {
  if (list.empty()) throw ramet::Error("[max] got an empty list, expected one with items");
  typename List::value_type best = list[0];
  for (const typename List::value_type& item : list)
    if (python::precedes(best, item)) best = item;
  return best;
}
)"},
      {"sum", R"(/// Python's sum(list).
template <class List> auto sum(const List& list) {
  using T = typename List::value_type;
  std::conditional_t<std::is_same_v<T, bool>, int64_t, T> made{};
  for (const T& item : list) made += item;
  return made;
}
)"},
      {"any_of", R"(/// Python's any(list).
template <class List> bool any_of(const List& list) {
  for (const auto& item : list)
    if (item != typename List::value_type{}) return true;
  return false;
}
)"},
      {"all_of", R"(/// Python's all(list).
template <class List> bool all_of(const List& list) {
  for (const auto& item : list)
    if (item == typename List::value_type{}) return false;
  return true;
}
)"},
      {"split", R"(/// Python's text.split(between, most); without `between` at blanks.
inline std::vector<std::string> split(const std::string& text,
                                      const std::optional<std::string>& between, int64_t most) {
  std::vector<std::string> parts;
  size_t from = 0;
  if (!between) {
    constexpr const char* kBlanks = " \t\n\r\f\v";
    while ((from = text.find_first_not_of(kBlanks, from)) != std::string::npos) {
      const size_t end = std::min(text.find_first_of(kBlanks, from), text.size());
      parts.push_back(text.substr(from, end - from));
      from = end;
    }
    return parts;
  }
  if (between->empty()) throw ramet::Error("[str] split: got an empty separator");
  for (size_t at; most-- != 0 && (at = text.find(*between, from)) != std::string::npos;
       from = at + between->size())
    parts.push_back(text.substr(from, at - from));
  parts.push_back(text.substr(from));
  return parts;
}
)"},
      {"take", R"(/// Python's dict.pop(key), and with another value where there is no such key.
template <class Dict>
typename Dict::mapped_type take(const Dict& dict, const typename Dict::key_type& key) {
  typename Dict::mapped_type taken = dict.at(key);
  dict.erase(key);
  return taken;
}
template <class Dict>
typename Dict::mapped_type take(const Dict& dict, const typename Dict::key_type& key,
                                typename Dict::mapped_type otherwise) {
  return dict.contains(key) ? take(dict, key) : otherwise;
}
)"},
      {"get", R"(/// Python's dict.get(key), and with another value where there is no such key.
template <class Dict>
typename Dict::mapped_type get(const Dict& dict, const typename Dict::key_type& key,
                               typename Dict::mapped_type otherwise) {
  return dict.contains(key) ? dict.at(key) : otherwise;
}
template <class Dict>
std::optional<typename Dict::mapped_type> get(const Dict& dict,
                                              const typename Dict::key_type& key) {
  if (!dict.contains(key)) return std::nullopt;
  return dict.at(key);
}
)"},
      {"update", R"(/// Python's dict.update(by), which may be the dictionary itself.
template <class K, class V>
void update(const ramet::Dict<K, V>& dict, const ramet::Dict<K, V>& by) {
  const ramet::Dict<K, V> added = by.copy();
  for (const auto& entry : added) dict.insert_or_assign(entry.key(), entry.value());
}
)"},
      {"dict", R"(/// Python's dict(pairs).
template <class Dict, class List> Dict dict(const List& pairs) {
  Dict made;
  for (const auto& pair : pairs) made.insert_or_assign(std::get<0>(pair), std::get<1>(pair));
  return made;
}
)"},
      {"keys", R"(/// Python's list(dict.keys()).
template <class List, class K, class V> List keys(const ramet::Dict<K, V>& dict) {
  List made;
  for (const auto& entry : dict) made.push_back(entry.key());
  return made;
}
)"},
      {"values", R"(/// Python's list(dict.values()).
template <class List, class K, class V> List values(const ramet::Dict<K, V>& dict) {
  List made;
  for (const auto& entry : dict) made.push_back(entry.value());
  return made;
}
)"},
      {"items", R"(/// Python's list(dict.items()).
template <class List, class K, class V> List items(const ramet::Dict<K, V>& dict) {
  List made;
  for (const auto& entry : dict) made.push_back({entry.key(), entry.value()});
  return made;
}
)"},
  };
}

}  // namespace ramet::script
