// einsum: reads the equation, brings operands to one order of dimensions, multiplies two at a time.
#include <algorithm>
#include <array>
#include <numeric>

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/matrix/matmul.h"
#include "autograd/ops/matrix/products.h"
#include "autograd/ops/pointwise/multiply.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "autograd/ops/shape/view_parts.h"
#include "runtime/base/checked_size.h"

namespace ramet {

using namespace autograd;

namespace {

constexpr const char* kOp = "einsum";
constexpr int kLetters = 52, kLabels = kLetters + kMaxRank;
constexpr int kEllipsis = -1;

int label_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  return -2;
}
char letter_of(int label) { return static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26); }

// The labels of one term; kEllipsis for "...".
std::vector<int> read_term(std::string_view equation, size_t& at, const char* whose) {
  std::vector<int> labels;
  bool dots = false;
  for (; at < equation.size(); ++at) {
    const char c = equation[at];
    if (c == ' ') continue;
    if (c == ',' || c == '-') break;
    if (c == '.') {
      RAMET_CHECK(!dots, kOp, "found '.' for ", whose,
                  " for which an ellipsis was already found: got \"", equation, "\"");
      RAMET_CHECK(equation.substr(at, 3) == "...", kOp, "found '.' for ", whose,
                  " that is not part of any ellipsis: got \"", equation, "\"");
      at += 2;
      dots = true;
      labels.push_back(kEllipsis);
      continue;
    }
    RAMET_CHECK(label_of(c) >= 0, kOp, "invalid subscript given at index ", at,
                " in the equation string, subscripts must be in [a-zA-Z]: got \"", equation, "\"");
    labels.push_back(label_of(c));
  }
  return labels;
}

struct Equation {
  std::vector<std::vector<int>> terms;
  bool given = false;  // is there a "->"?
  std::vector<int> result;
};
Equation read(std::string_view equation) {
  Equation e;
  for (size_t at = 0;; ++at) {
    e.terms.push_back(read_term(equation, at, "an operand"));
    if (at >= equation.size()) return e;
    if (equation[at] == ',') continue;
    RAMET_CHECK(equation.substr(at, 2) == "->", kOp, "found '-' that is not part of \"->\": got \"",
                equation, "\"");
    at += 2;
    e.given = true;
    e.result = read_term(equation, at, "the output");
    RAMET_CHECK(at >= equation.size(), kOp, "invalid subscript given at index ", at,
                " in the equation string, subscripts must be in [a-zA-Z]: got \"", equation, "\"");
    return e;
  }
}

// A tensor, and the label of each of its dimensions; no label occurs twice.
struct Term {
  Tensor t;
  std::vector<int> labels;
  int64_t find(int label) const {
    const auto at = std::find(labels.begin(), labels.end(), label);
    return at == labels.end() ? -1 : at - labels.begin();
  }
  bool has(int label) const { return find(label) >= 0; }
  int64_t size(int label) const { return t.size(find(label)); }
};

// The operand with labels for the ellipsis (the last label of all for the last dimension), and with
// diagonals for repeated letters. A label may have one extent and 1.
Term term_of(const Tensor& x, const std::vector<int>& given, size_t number, int64_t& dots,
             std::array<int64_t, kLabels>& extents) {
  check_defined(kOp, x);
  const auto letters = static_cast<int64_t>(
      std::count_if(given.begin(), given.end(), [](int l) { return l != kEllipsis; }));
  const bool ellipsis = letters != static_cast<int64_t>(given.size());
  RAMET_CHECK(ellipsis ? letters <= x.dim() : letters == x.dim(), kOp,
              "the number of subscripts in the equation (", letters,
              ellipsis ? ") is more than the number of dimensions ("
                       : ") does not match the number of dimensions (",
              x.dim(), ") for operand ", number, ellipsis ? "" : " and no ellipsis was given");
  Term term{x, {}};
  for (const int label : given) {
    if (label == kEllipsis) {
      const int64_t n = x.dim() - letters;
      dots = std::max(dots, n);
      for (int64_t i = n; i > 0; --i) term.labels.push_back(kLabels - static_cast<int>(i));
    } else {
      term.labels.push_back(label);
    }
  }
  for (size_t d = 0; d < term.labels.size();) {
    const int label = term.labels[d];
    const auto first = static_cast<size_t>(term.find(label));
    if (first != d) {
      const int64_t a = term.t.size(static_cast<int64_t>(first)),
                    b = term.t.size(static_cast<int64_t>(d));
      RAMET_CHECK(a == b, kOp, "subscript ", letter_of(label), " is repeated for operand ", number,
                  " but the sizes don't match, ", b, " != ", a);
      // The diagonal becomes the last dimension.
      term.t = diagonal(term.t, 0, static_cast<int64_t>(first), static_cast<int64_t>(d))
                   .movedim(-1, static_cast<int64_t>(first));
      term.labels.erase(term.labels.begin() + static_cast<ptrdiff_t>(d));
      continue;
    }
    int64_t& extent = extents[static_cast<size_t>(label)];
    const int64_t n = term.t.size(static_cast<int64_t>(d));
    RAMET_CHECK(extent == n || extent == 1 || n == 1, kOp, "subscript ",
                label < kLetters ? std::string(1, letter_of(label)) : "...", " has size ", n,
                " for operand ", number, " which does not broadcast with previously seen size ",
                extent);
    if (extent == 1) extent = n;
    ++d;
  }
  return term;
}

void drop(Term& x, int label) {
  const int64_t d = x.find(label);
  x.t = x.t.squeeze(d);
  x.labels.erase(x.labels.begin() + d);
}
// Sums over the labels that no later step needs; integers become int64.
template <class Needed> void sum_out(Term& x, const Needed& needed) {
  std::vector<int64_t> dims;
  std::vector<int> left;
  for (size_t d = 0; d < x.labels.size(); ++d) {
    if (needed(x.labels[d])) left.push_back(x.labels[d]);
    else dims.push_back(static_cast<int64_t>(d));
  }
  if (dims.empty()) return;
  x.t = x.t.sum(OptionalIntArrayRef(dims));
  x.labels = std::move(left);
}

// x with its dimensions in these groups of labels; each group becomes one dimension.
Tensor grouped(const Term& x, std::initializer_list<const std::vector<int>*> groups) {
  std::vector<int64_t> order, sizes;
  for (const std::vector<int>* group : groups) {
    int64_t n = 1;
    for (const int label : *group) {
      order.push_back(x.find(label));
      n = checked_mul(kOp, "size", n, x.size(label));
    }
    sizes.push_back(n);
  }
  return x.t.permute(order).reshape(sizes);
}

// The product of two terms, summed over the labels that both have and no later step needs.
template <class Needed> Term contracted(Term a, Term b, const Needed& needed) {
  // Drop a dimension of extent 1 where the other term has a longer one; there is nothing to sum.
  for (const int label : std::vector<int>(a.labels)) {
    if (!b.has(label)) continue;
    const bool one = a.size(label) == 1, both = one && b.size(label) == 1;
    if (both && needed(label)) continue;
    if (one) drop(a, label);
    if (both || (!one && b.size(label) == 1)) drop(b, label);
  }
  sum_out(a, [&](int l) { return b.has(l) || needed(l); });
  sum_out(b, [&](int l) { return a.has(l) || needed(l); });
  std::vector<int> batch, left, right, summed;
  for (const int label : a.labels)
    (!b.has(label) ? left : needed(label) ? batch : summed).push_back(label);
  for (const int label : b.labels)
    if (!a.has(label)) right.push_back(label);
  Term out;
  for (const std::vector<int>* group : {&batch, &left, &right})
    out.labels.insert(out.labels.end(), group->begin(), group->end());
  std::vector<int64_t> sizes;
  for (const int label : out.labels) sizes.push_back(a.has(label) ? a.size(label) : b.size(label));
  if (summed.empty()) {
    const auto spread = [&](const Term& x) {
      std::vector<int64_t> order, shape;
      for (const int label : out.labels) {
        shape.push_back(x.has(label) ? x.size(label) : 1);
        if (x.has(label)) order.push_back(x.find(label));
      }
      return x.t.permute(order).reshape(shape);
    };
    out.t = spread(a).mul(spread(b));
    return out;
  }
  // Where both are integers, one may have been summed before.
  const ScalarType t = result_type(a.t, b.t);
  if (is_integral(t)) a.t = a.t.to(t), b.t = b.t.to(t);
  if (left.empty() && right.empty() && batch.empty()) {
    out.t = dot(grouped(a, {&summed}), grouped(b, {&summed}));
  } else if (batch.empty()) {
    out.t = mm(grouped(a, {&left, &summed}), grouped(b, {&summed, &right})).reshape(sizes);
  } else {
    out.t = bmm(grouped(a, {&batch, &left, &summed}), grouped(b, {&batch, &summed, &right}))
                .reshape(sizes);
  }
  return out;
}

// The labels of the result; an ellipsis has `dots` dimensions.
std::vector<int> result_labels(const Equation& e, int64_t dots,
                               const std::array<int64_t, kLabels>& extents) {
  std::vector<int> ellipsis(static_cast<size_t>(dots)), labels;
  std::iota(ellipsis.begin(), ellipsis.end(), kLabels - static_cast<int>(dots));
  if (!e.given) {
    std::array<int, kLetters> count{};
    for (const std::vector<int>& term : e.terms)
      for (const int label : term)
        if (label >= 0) ++count[static_cast<size_t>(label)];
    labels = ellipsis;
    for (int label = 0; label < kLetters; ++label)
      if (count[static_cast<size_t>(label)] == 1) labels.push_back(label);
    return labels;
  }
  for (const int label : e.result) {
    if (label == kEllipsis) {
      labels.insert(labels.end(), ellipsis.begin(), ellipsis.end());
      continue;
    }
    RAMET_CHECK(std::count(e.result.begin(), e.result.end(), label) == 1, kOp, "output subscript ",
                letter_of(label), " appears more than once in the output");
    RAMET_CHECK(extents[static_cast<size_t>(label)] >= 0, kOp, "output subscript ",
                letter_of(label), " does not appear in the equation for any input operand");
    labels.push_back(label);
  }
  return labels;
}

}  // namespace

Tensor einsum_body(std::string_view equation, TensorList tensors, OptionalIntArrayRef path) {
  RAMET_CHECK(!tensors.empty(), kOp, "must provide at least one operand");
  const Equation e = read(equation);
  RAMET_CHECK(e.terms.size() == tensors.size(), kOp,
              e.terms.size() > tensors.size()
                  ? "fewer operands were provided than specified in the equation: got "
                  : "more operands were provided than specified in the equation: got ",
              tensors.size(), ", expected ", e.terms.size());
  // The extent of each label; -1 for letters that no operand has.
  std::array<int64_t, kLabels> extents;
  extents.fill(-1);
  for (const std::vector<int>& term : e.terms)
    for (const int label : term)
      if (label >= 0) extents[static_cast<size_t>(label)] = 1;
  std::fill(extents.begin() + kLetters, extents.end(), 1);
  int64_t dots = 0;
  std::vector<Term> terms;
  for (size_t i = 0; i < tensors.size(); ++i) {
    terms.push_back(term_of(tensors[i], e.terms[i], i, dots, extents));
    check_same_device(kOp, tensors[0], tensors[i]);
  }
  const std::vector<int> result = result_labels(e, dots, extents);
  const bool by_path = path.has_value();
  if (by_path) {
    const size_t steps = terms.size() == 1 ? 1 : 2 * (terms.size() - 1);
    RAMET_CHECK(path.value().size() == steps, kOp,
                "expected contraction path given in path parameter to have size ", steps,
                " but got ", path.value().size());
  }

  const auto needed = [&](int label) {
    return std::find(result.begin(), result.end(), label) != result.end() ||
           std::any_of(terms.begin(), terms.end(), [&](const Term& x) { return x.has(label); });
  };
  for (size_t step = 0; terms.size() > 1; step += 2) {
    int64_t i = by_path ? path.value()[step] : 0, j = by_path ? path.value()[step + 1] : 1;
    if (j < i) std::swap(i, j);
    RAMET_CHECK(i != j && i >= 0 && j < static_cast<int64_t>(terms.size()), kOp,
                "invalid contraction path (", i, ", ", j, ") in operands list of ", terms.size());
    Term a = std::move(terms[static_cast<size_t>(i)]), b = std::move(terms[static_cast<size_t>(j)]);
    terms.erase(terms.begin() + j);
    terms.erase(terms.begin() + i);
    Term product = contracted(std::move(a), std::move(b), needed);
    terms.insert(by_path ? terms.end() : terms.begin(), std::move(product));
  }
  Term last = std::move(terms[0]);
  sum_out(last, [&](int label) {
    return std::find(result.begin(), result.end(), label) != result.end();
  });
  std::vector<int64_t> order;
  for (const int label : result) order.push_back(last.find(label));
  return last.t.permute(order);
}

}  // namespace ramet
