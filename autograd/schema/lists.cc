// Operators on lists. A list of ints, floats, bools or tensors is a List of these, any other a
// GenericList; copies share their items.
#include <numeric>

#include "autograd/schema/table_internal.h"
#include "autograd/schema/values_internal.h"
#include "runtime/base/checked_size.h"

namespace ramet::script {
namespace {

template <class T> using ItemOf = typename std::decay_t<T>::value_type;

void set(const IValue& list, int64_t index, const IValue& item) {
  with_list(list, [&](const auto& items) {
    items.set(place(index, items.size(), "list"), item.to<ItemOf<decltype(items)>>());
  });
}
void append(const IValue& list, const IValue& item) {
  with_list(list, [&](const auto& items) { items.push_back(item.to<ItemOf<decltype(items)>>()); });
}
// Copies the items first: a list may be extended by itself.
void extend(const IValue& list, const IValue& other) {
  with_list(list, [&](const auto& items) {
    using List = std::decay_t<decltype(items)>;
    for (const auto& item : std::vector(other.to<List>().vec())) items.push_back(item);
  });
}
// A new list of the items at the places that `places` gives.
template <class F> IValue picked(const IValue& list, size_t count, const F& places) {
  return with_list(list, [&](const auto& items) {
    std::decay_t<decltype(items)> made;
    made.reserve(count);
    for (size_t i = 0; i < count; ++i) made.push_back(items.vec()[places(i)]);
    return IValue(made);
  });
}
IValue copy(const IValue& list) {
  return picked(list, length(list), [](size_t i) { return i; });
}
// The items of this list become those.
void replace(const IValue& list, const IValue& by) {
  with_list(list, [&](const auto& items) {
    using List = std::decay_t<decltype(items)>;
    const List made = by.to<List>();
    items.clear();
    for (const auto& item : made.vec()) items.push_back(item);
  });
}
IValue slice(const IValue& list, const Call& a) {
  const Sliced taken =
      sliced(a.may_integer(1), a.may_integer(2), a.integer(3), static_cast<int64_t>(length(list)));
  return picked(list, static_cast<size_t>(taken.count), [&](size_t i) {
    return static_cast<size_t>(taken.first + static_cast<int64_t>(i) * taken.step);
  });
}
IValue pop(const IValue& list, int64_t index) {
  const size_t size = length(list);
  RAMET_CHECK(size > 0, "list", "pop: got an empty list, expected one with items");
  const size_t at = place(index, size, "list");
  IValue taken = item_at(list, static_cast<int64_t>(at));
  replace(list, picked(list, size - 1, [&](size_t i) { return i < at ? i : i + 1; }));
  return taken;
}
// The last is the usual one, and needs no copy of the others.
IValue popped(const IValue& list, int64_t index) {
  const size_t size = length(list);
  if (size == 0 || (index != -1 && index != static_cast<int64_t>(size) - 1))
    return pop(list, index);
  IValue taken = item_at(list, -1);
  with_list(list, [](const auto& items) { items.pop_back(); });
  return taken;
}
void insert(const IValue& list, int64_t index, const IValue& item) {
  const auto size = static_cast<int64_t>(length(list));
  const auto at =
      static_cast<size_t>(std::clamp<int64_t>(index < 0 ? index + size : index, 0, size));
  append(list, item);
  replace(list, picked(list, length(list), [&](size_t i) {
            return i < at ? i : i == at ? static_cast<size_t>(size) : i - 1;
          }));
}
IValue times(const IValue& list, int64_t n) {
  const size_t size = length(list);
  constexpr int64_t kMost = int64_t{1} << 32;
  RAMET_CHECK(size == 0 || n <= kMost / static_cast<int64_t>(size), "mul", "got a list of ", size,
              " items ", n, " times, expected at most 2^32 items");
  const size_t count = n <= 0 ? 0 : size * static_cast<size_t>(n);
  check_room("mul", "a list", count, sizeof(IValue));
  return picked(list, count, [&](size_t i) { return i % size; });
}
IValue joined(const IValue& a, const IValue& b) {
  const IValue made = copy(a);
  extend(made, b);
  return made;
}
int64_t find(const IValue& list, const IValue& item) {
  const auto items = list.toList();
  for (size_t i = 0; i < items.size(); ++i)
    if (equal_values(items.vec()[i], item)) return static_cast<int64_t>(i);
  return -1;
}
int64_t found(const IValue& list, const IValue& item, const char* op) {
  const int64_t at = find(list, item);
  RAMET_CHECK(at >= 0, op, "got ", short_text(item), ", expected an item of the list");
  return at;
}
int64_t count(const IValue& list, const IValue& item) {
  int64_t n = 0;
  const auto items = list.toList();
  for (const IValue& each : items.vec()) n += equal_values(each, item) ? 1 : 0;
  return n;
}

// The order of sort() and of lists: numbers, strings, tensors of one element, tuples item by item.
bool less(const IValue& a, const IValue& b) {
  if (a.isString() && b.isString()) return a.toStringRef() < b.toStringRef();
  if (a.isTensor() && b.isTensor())
    return a.toTensor().item().toDouble() < b.toTensor().item().toDouble();
  if (a.isInt() && b.isInt()) return a.toInt() < b.toInt();
  if (a.isTuple() && b.isTuple()) {
    const std::vector<IValue>&left = a.toTupleRef().elements(), &right = b.toTupleRef().elements();
    for (size_t i = 0; i < std::min(left.size(), right.size()); ++i)
      if (!equal_values(left[i], right[i])) return less(left[i], right[i]);
    return left.size() < right.size();
  }
  RAMET_CHECK(a.isScalar() && b.isScalar(), "sort", "got ", a.tagKind(), " and ", b.tagKind(),
              ", expected numbers, strings, tensors, or tuples of these");
  return a.toScalar().toDouble() < b.toScalar().toDouble();
}
IValue sorted(const IValue& list, bool reverse) {
  const auto items = list.toList();
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    return reverse ? less(items.vec()[j], items.vec()[i]) : less(items.vec()[i], items.vec()[j]);
  });
  return picked(list, order.size(), [&](size_t i) { return order[i]; });
}
void reverse(const IValue& list) {
  const size_t size = length(list);
  replace(list, picked(list, size, [&](size_t i) { return size - 1 - i; }));
}
IValue extreme(const IValue& list, bool largest) {
  const auto items = list.toList();
  RAMET_CHECK(!items.empty(), largest ? "max" : "min",
              "got an empty list, expected one with items");
  IValue best = items.vec()[0];
  for (const IValue& item : items.vec())
    if (largest ? less(best, item) : less(item, best)) best = item;
  return best;
}
bool lists_less(const IValue& a, const IValue& b) {
  const auto left = a.toList(), right = b.toList();
  return std::lexicographical_compare(left.vec().begin(), left.vec().end(), right.vec().begin(),
                                      right.vec().end(), less);
}
template <class T, class R> R sum(const std::vector<T>& items) {
  return std::accumulate(items.begin(), items.end(), R{});
}
int64_t wrapped_sum(const std::vector<int64_t>& items) {
  uint64_t made = 0;
  for (const int64_t item : items) made += static_cast<uint64_t>(item);
  return static_cast<int64_t>(made);
}
bool any(const IValue& list) {
  const auto items = list.toList();
  for (const IValue& item : items.vec())
    if (item.isString() ? !item.toStringRef().empty() : item.toScalar().toBool()) return true;
  return false;
}
bool all(const IValue& list) {
  const auto items = list.toList();
  for (const IValue& item : items.vec())
    if (!item.toScalar().toBool()) return false;
  return true;
}
IValue first_numbers(int64_t n) {
  RAMET_CHECK(n < int64_t{1} << 32, "range", "got a list of ", n, " numbers, expected below 2^32");
  check_room("range", "a list", static_cast<uint64_t>(std::max<int64_t>(n, 0)), sizeof(n));
  std::vector<int64_t> made(static_cast<size_t>(std::max<int64_t>(n, 0)));
  std::iota(made.begin(), made.end(), int64_t{0});
  return made;
}

// For lists of one type: what needs equality or order.
#define RAMET_ITEMS(T)                                                                            \
  RAMET_LINE("aten::eq." T "_list(" T "[] a, " T "[] b) -> bool", equal_values(a[0], a[1])),      \
      RAMET_LINE("aten::ne." T "_list(" T "[] a, " T "[] b) -> bool", !equal_values(a[0], a[1])), \
      RAMET_LINE_DO("aten::remove." T "(" T "[](a!) self, " T " el) -> ()",                       \
                    pop(a[0], found(a[0], a[1], "remove"))),                                      \
      RAMET_LINE("aten::index.list_" T "(" T "[] self, " T " el) -> int",                         \
                 found(a[0], a[1], "index")),                                                     \
      RAMET_LINE("aten::count." T "(" T "[] self, " T " el) -> int", count(a[0], a[1])),          \
      RAMET_LINE_DO("aten::sort." T "(" T "[](a!) self, bool reverse=False) -> ()",               \
                    replace(a[0], sorted(a[0], a.truth(1)))),                                     \
      RAMET_LINE("aten::sorted." T "(" T "[](a) input) -> " T "[]", sorted(a[0], false)),

// The larger of two lists is a new one, as with PyTorch: a literal in the code is a constant.
#define RAMET_EXTREMES(T)                                                          \
  RAMET_LINE("prim::max." T "_list(" T "[] l, " T "[] r) -> " T "[]",              \
             copy(lists_less(a[0], a[1]) ? a[1] : a[0])),                          \
      RAMET_LINE("prim::min." T "_list(" T "[] l, " T "[] r) -> " T "[]",          \
                 copy(lists_less(a[1], a[0]) ? a[1] : a[0])),                      \
      RAMET_LINE("prim::max.self_" T "(" T "[] self) -> " T, extreme(a[0], true)), \
      RAMET_LINE("prim::min.self_" T "(" T "[] self) -> " T, extreme(a[0], false)),

const Line kLists[] = {
    RAMET_LINE("aten::len.t(t[] a) -> int", static_cast<int64_t>(length(a[0]))),
    RAMET_LINE("aten::__getitem__.t(t[](a) list, int idx) -> t(*)", item_at(a[0], a.integer(1))),
    {"aten::_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)",
     [](Arguments a) {
       set(*a[0], a[1]->toInt(), *a[2]);
       return *a[0];
     }},
    {"aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)",
     [](Arguments a) {
       append(*a[0], *a[1]);
       return *a[0];
     }},
    RAMET_LINE_DO("aten::extend.t(t[](a!) self, t[] other) -> ()", extend(a[0], a[1])),
    RAMET_LINE_DO("aten::insert.t(t[](a!) self, int idx, t(b -> *) el) -> ()",
                  insert(a[0], a.integer(1), a[2])),
    RAMET_LINE("aten::pop.t(t[](a!) self, int idx=-1) -> t(*)", popped(a[0], a.integer(1))),
    RAMET_LINE_DO("aten::Delete.t(t[](a!) self, int idx) -> ()", pop(a[0], a.integer(1))),
    RAMET_LINE_DO("aten::clear.t(t[](a!) self) -> ()",
                  with_list(a[0], [](const auto& items) { items.clear(); })),
    RAMET_LINE_DO("aten::reverse.t(t[](a!) self) -> ()", reverse(a[0])),
    RAMET_LINE("aten::copy.t(t[](a) self) -> t[]", copy(a[0])),
    RAMET_LINE("aten::list.t(t[] l) -> t[]", copy(a[0])),
    RAMET_LINE("aten::slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]",
               slice(a[0], a)),
    RAMET_LINE("aten::add.t(t[] a, t[] b) -> t[]", joined(a[0], a[1])),
    {"aten::add_.t(t[](a!) self, t[] b) -> t[]",
     [](Arguments a) {
       extend(*a[0], *a[1]);
       return *a[0];
     }},
    RAMET_LINE("aten::mul.left_t(t[] l, int n) -> t[]", times(a[0], a.integer(1))),
    RAMET_LINE("aten::mul.right_(int n, t[] l) -> t[]", times(a[1], a.integer(0))),
    {"aten::mul_.t(t[](a!) l, int n) -> t[](a!)",
     [](Arguments a) {
       replace(*a[0], times(*a[0], a[1]->toInt()));
       return *a[0];
     }},
    RAMET_LINE("aten::__contains__.int_list(int[] l, int item) -> bool", find(a[0], a[1]) >= 0),
    RAMET_LINE("aten::__contains__.float_list(float[] l, float item) -> bool",
               find(a[0], a[1]) >= 0),
    RAMET_LINE("aten::__contains__.str_list(str[] l, str item) -> bool", find(a[0], a[1]) >= 0),
    RAMET_ITEMS("int") RAMET_ITEMS("float") RAMET_ITEMS("bool") RAMET_ITEMS("str")
        RAMET_ITEMS("Tensor")
            RAMET_LINE_DO("aten::sort.any(t[](a!) self, bool reverse=False) -> ()",
                          replace(a[0], sorted(a[0], a.truth(1)))),
    RAMET_LINE("aten::sorted.any(t[](a) self) -> t[]", sorted(a[0], false)),
    RAMET_EXTREMES("int") RAMET_EXTREMES("float") RAMET_EXTREMES("bool")
        RAMET_LINE("aten::sum.int(int[] self) -> int", wrapped_sum(a[0].toIntVector())),
    RAMET_LINE("aten::sum.float(float[] self) -> float",
               (sum<double, double>(a[0].toDoubleVector()))),
    RAMET_LINE("aten::sum.bool(bool[] self) -> int", (sum<bool, int64_t>(a[0].toBoolList().vec()))),
    RAMET_LINE("aten::any.int(int[] self) -> bool", any(a[0])),
    RAMET_LINE("aten::any.float(float[] self) -> bool", any(a[0])),
    RAMET_LINE("aten::any.bool(bool[] self) -> bool", any(a[0])),
    RAMET_LINE("aten::any.str(str[] self) -> bool", any(a[0])),
    RAMET_LINE("aten::all.int(int[] self) -> bool", all(a[0])),
    RAMET_LINE("aten::all.float(float[] self) -> bool", all(a[0])),
    RAMET_LINE("aten::all.bool(bool[] self) -> bool", all(a[0])),
    RAMET_LINE("prim::rangelist(int n) -> int[]", first_numbers(a.integer(0))),
};

}  // namespace

Lines lines_of_lists() { return kLists; }

}  // namespace ramet::script
