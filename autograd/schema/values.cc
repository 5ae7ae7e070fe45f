#include <ostream>
#include <set>
#include <streambuf>
#include <utility>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "autograd/schema/values_internal.h"
#include "runtime/base/classic.h"

namespace ramet::script {

namespace {

constexpr int kMostLevels = 1000;  // values inside each other that are compared

constexpr size_t kMostText = size_t{1} << 24;
constexpr size_t kShortText = 200;

// Appends to a text, up to a length. Streams pass the exception on.
class Appender final : public std::streambuf {
 public:
  struct Full {};
  Appender(std::string& text, size_t most) : text_(text), most_(most) {}

 protected:
  int_type overflow(int_type c) override {
    const char one = traits_type::to_char_type(c);
    return xsputn(&one, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* from, std::streamsize count) override {
    const size_t room = most_ - std::min(most_, text_.size());
    text_.append(from, std::min(room, static_cast<size_t>(count)));
    if (room < static_cast<size_t>(count)) throw Full();
    return count;
  }

 private:
  std::string& text_;
  size_t most_;
};

// Did all of it fit?
bool append(std::string& text, const IValue& value, size_t most) {
  Appender appender(text, most);
  std::ostream out(&appender);
  const detail::ClassicScope classic(out);
  out.exceptions(std::ios::badbit);
  try {
    out << value;
  } catch (const Appender::Full&) { return false; }
  return true;
}

// One comparison. Values that share parts have many ways to a part: each pair is compared once.
class Comparison {
 public:
  bool equal(const IValue& a, const IValue& b);

 private:
  bool all_equal(const std::vector<IValue>& a, const std::vector<IValue>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (!equal(a[i], b[i])) return false;
    return true;
  }
  bool items_equal(const IValue& a, const IValue& b);
  std::set<std::pair<const void*, const void*>> known_;  // are equal, below the first two levels
  int depth_ = 0;
};

bool Comparison::items_equal(const IValue& a, const IValue& b) {
  if (a.isTuple() && b.isTuple())
    return all_equal(a.toTupleRef().elements(), b.toTupleRef().elements());
  if (a.isList() && b.isList()) {
    if (length(a) != length(b)) return false;
    const auto left = a.toList(), right = b.toList();
    return all_equal(left.vec(), right.vec());
  }
  if (!a.isGenericDict() || !b.isGenericDict()) return false;
  const IValue::GenericDict &left = a.toGenericDict(), &right = b.toGenericDict();
  if (left.size() != right.size()) return false;
  for (const auto& entry : left) {
    const auto found = right.find(entry.key());
    if (found == right.end() || !equal(entry.value(), found->value())) return false;
  }
  return true;
}

bool Comparison::equal(const IValue& a, const IValue& b) {
  if (a.isTensor() && b.isTensor()) return eq(a.toTensor(), b.toTensor()).is_nonzero();
  if (a.isScalar() && b.isScalar())
    return a.isDouble() || b.isDouble() ? a.toScalar().toDouble() == b.toScalar().toDouble()
                                        : a.toScalar().toLong() == b.toScalar().toLong();
  if (a.isDevice() && b.isDevice()) return a.toDevice() == b.toDevice();
  const bool nested = a.isTuple() || a.isList() || a.isGenericDict();
  if (!nested) return a.is(b);  // strings, None, objects
  const std::pair<const void*, const void*> pair{shared_items(a), shared_items(b)};
  const bool shared = pair.first && pair.second;
  if (shared && (pair.first == pair.second || known_.count(pair) != 0)) return true;
  RAMET_CHECK(depth_ < kMostLevels, "eq", "got more than ", kMostLevels,
              " values inside each other, expected fewer");
  ++depth_;
  const bool same = items_equal(a, b);
  --depth_;
  if (same && shared && depth_ > 1) known_.insert(pair);
  return same;
}

}  // namespace

const void* shared_items(const IValue& v) {
  if (v.isTuple()) return v.toTuple().get();
  if (v.isGenericDict()) return v.toGenericDict().id();
  return v.isGenericList() ? static_cast<const void*>(&v.toList().vec()) : nullptr;
}

void append_text(std::string& made, const IValue& value) {
  RAMET_CHECK(append(made, value, kMostText), "str", "got a value of more than ", kMostText,
              " characters as text, expected at most so many");
}

std::string short_text(const IValue& value) {
  std::string made;
  if (!append(made, value, kShortText)) made += "...";
  return made;
}

std::vector<int64_t> dims_from(int64_t first, int64_t end) {
  std::vector<int64_t> dims;
  for (int64_t d = first; d < end; ++d) dims.push_back(d);
  return dims;
}
ScalarType statistics_dtype(const Tensor& x) {
  const ScalarType type = x.scalar_type();
  return type == kHalf || type == kBFloat16 ? kFloat : type;
}

bool equal_values(const IValue& a, const IValue& b) { return Comparison().equal(a, b); }

size_t place(int64_t index, size_t size, const char* op) {
  const auto n = static_cast<int64_t>(size);
  if (index < -n || index >= n)
    throw IndexError(std::string("[") + op + "] index: got " + std::to_string(index) +
                     ", expected one from " + std::to_string(-n) + " to " + std::to_string(n - 1));
  return static_cast<size_t>(index < 0 ? index + n : index);
}

size_t length(const IValue& list) {
  return list.isIntList()      ? list.toIntVector().size()
         : list.isTensorList() ? list.toTensorVector().size()
         : list.isDoubleList() ? list.toDoubleVector().size()
         : list.isBoolList()   ? list.toBoolList().size()
                               : list.toListRef().size();
}

IValue item_at(const IValue& list, int64_t index) {
  if (list.isTensorList()) {
    const std::vector<Tensor>& items = list.toTensorVector();
    return items[place(index, items.size(), "list")];
  }
  if (list.isIntList()) {
    const std::vector<int64_t>& items = list.toIntVector();
    return items[place(index, items.size(), "list")];
  }
  return with_list(list, [&](const auto& items) {
    using Item = typename std::decay_t<decltype(items)>::value_type;
    return IValue(Item(items.vec()[place(index, items.size(), "list")]));
  });
}

IValue make_list(Type::Kind element, Arguments items) {
  const auto made = [items](auto list, auto get) -> IValue {
    list.reserve(items.size());
    for (const IValue* item : items) list.push_back(get(*item));
    return list;
  };
  switch (element) {
    case Type::Kind::kInt: return made(List<int64_t>(), [](const IValue& v) { return v.toInt(); });
    case Type::Kind::kFloat:
      return made(List<double>(), [](const IValue& v) { return v.toDouble(); });
    case Type::Kind::kBool: return made(List<bool>(), [](const IValue& v) { return v.toBool(); });
    case Type::Kind::kTensor:
      return made(List<Tensor>(), [](const IValue& v) { return v.toTensor(); });
    default: return made(IValue::GenericList(), [](const IValue& v) { return v; });
  }
}

IValue make_list(const TypePtr& element, const std::vector<IValue>& items) {
  std::vector<const IValue*> pointers;
  pointers.reserve(items.size());
  for (const IValue& item : items) pointers.push_back(&item);
  return make_list(element->kind(), pointers);
}

Sliced sliced(std::optional<int64_t> start, std::optional<int64_t> end, int64_t step,
              int64_t size) {
  RAMET_CHECK(step != 0, "slice", "got a step of 0, expected another");
  const auto inside = [&](int64_t x) {
    if (x < 0) x += size;
    return step > 0 ? std::clamp<int64_t>(x, 0, size) : std::clamp<int64_t>(x, -1, size - 1);
  };
  const int64_t first = start ? inside(*start) : step > 0 ? 0 : size - 1;
  const int64_t last = end ? inside(*end) : step > 0 ? size : -1;
  const int64_t width = step > 0 ? last - first : first - last;
  if (width <= 0) return {first, 0, step};
  // The magnitude of the least step exceeds any width.
  const uint64_t by = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  return {first, static_cast<int64_t>((static_cast<uint64_t>(width) - 1) / by) + 1, step};
}

}  // namespace ramet::script
