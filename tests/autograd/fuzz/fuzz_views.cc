// Steps that make tensors and other views of them.
#include <algorithm>
#include <numeric>

#include "tests/autograd/fuzz/fuzz_programs.h"

namespace ramet {
namespace fuzz {
namespace {

// Values in (-1.1, 1.1), none of them special.
double drawn(int number, size_t i) {
  const uint64_t h =
      (i + 1) * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(number + 1) * 0xBF58476D1CE4E5B9u;
  return (static_cast<double>((h ^ (h >> 29)) >> 40) * 0x1p-24 - 0.5) * 2.2;
}

}  // namespace

void Program::push_new() {
  Shape sizes;
  for (int64_t rank = tape_.below(4); rank > 0; --rank)
    sizes.push_back((tape_.below(16) + 4) % 16 ? 1 + tape_.below(3) : 0);
  const size_t n = static_cast<size_t>(count(sizes));
  const bool wants = !tape_.one_in(3) && n > 0 && slots_ + n <= kSlots;
  // Dimensions in any order, and gaps between elements.
  Shape order(sizes.size()), strides(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t d = order.size(); d-- > 1;)
    std::swap(order[d], order[d - static_cast<size_t>(tape_.below(static_cast<int64_t>(d) + 1))]);
  int64_t stride = 1 + tape_.one_in(3);
  for (size_t d = order.size(); d-- > 0;) {
    strides[static_cast<size_t>(order[d])] = stride;
    stride *= std::max<int64_t>(sizes[static_cast<size_t>(order[d])], 1);
  }
  Tensor t(TensorBase::empty_strided(sizes, strides, kDouble, Device(kCPU, 0)));
  std::vector<Dual> values(n);
  size_t i = 0;
  each(sizes, [&](const Shape& index) {
    const int64_t p = std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0});
    t.data_ptr<double>()[p] = values[i].value = drawn(next_, i);
    if (wants) values[i].slope[slots_ + i] = 1;
    ++i;
  });
  Twin w = fresh(sizes, values, wants);
  w.history->leaf = wants;
  if (wants) {
    t.requires_grad_();
    leaves_.push_back({t, slots_, next_});
    slots_ += n;
  }
  push(std::string(wants ? "leaf" : "constant") + " of strides " +
           detail::join(IntArrayRef(strides)) + ", sizes " + detail::join(IntArrayRef(sizes)),
       t, std::move(w));
}

void Program::push_view() {
  const Var x = pick();
  const std::string name = "v" + std::to_string(x.number);
  const Shape s = shape_of(x.t);
  const int64_t rank = static_cast<int64_t>(s.size());
  const int64_t kind = tape_.below(9);
  const auto with = [](Shape i, size_t d, int64_t v) {
    i[d] = v;
    return i;
  };
  const auto add = [&](const char* op, Tensor t, const std::function<Shape(const Shape&)>& source) {
    const Shape sizes = shape_of(t);
    push(name + "." + op, std::move(t), view_of(x.w, sizes, source));
  };
  if (kind == 0) {  // unsqueeze
    const int64_t d = tape_.below(rank + 1);
    return add("unsqueeze", x.t.unsqueeze(d), [d](Shape i) {
      i.erase(i.begin() + d);
      return i;
    });
  }
  if (kind == 1) {  // the same elements in one row: a view where the strides allow it
    const Tensor t = x.t.reshape({-1});
    const auto source = [&](const Shape& i) {
      Shape from(s.size());
      int64_t rest = i[0];
      for (size_t d = s.size(); d-- > 0; rest /= s[d]) from[d] = rest % s[d];
      return from;
    };
    if (t.storage_impl() == x.t.storage_impl()) return add("reshape(-1)", t, source);
    return push(name + ".reshape(-1) copied", t,
                fresh(shape_of(t), read(x.w, x.w.sizes), x.w.grad()));
  }
  if (rank == 0) return;
  const int64_t d = tape_.below(rank), e = tape_.below(rank);
  const size_t at = static_cast<size_t>(d), other = static_cast<size_t>(e);
  const int64_t extent = s[at];
  switch (kind) {
    case 2:
      return add("transpose", x.t.transpose(d, e), [=](Shape i) {
        std::swap(i[at], i[other]);
        return i;
      });
    case 3: {
      if (extent == 0) return;
      const int64_t k = tape_.below(extent);
      return add("select", x.t.select(d, k), [=](Shape i) {
        i.insert(i.begin() + d, k);
        return i;
      });
    }
    case 4: {
      const int64_t begin = tape_.below(extent + 1), end = begin + tape_.below(extent - begin + 1),
                    by = 1 + tape_.below(2);
      return add("slice", x.t.slice(d, begin, end, by),
                 [=](const Shape& i) { return with(i, at, begin + i[at] * by); });
    }
    case 5: {
      if (count(s) * 3 > kMaxElements) return;
      Shape to = s;
      for (int64_t& n : to)
        if (n == 1) n = 1 + tape_.below(3);
      if (tape_.one_in(2)) to.insert(to.begin(), 2);
      const size_t lead = to.size() - s.size();
      return add("expand", x.t.expand(to), [=](const Shape& i) {
        Shape from(i.begin() + static_cast<std::ptrdiff_t>(lead), i.end());
        for (size_t k = 0; k < from.size(); ++k)
          if (s[k] == 1) from[k] = 0;
        return from;
      });
    }
    case 6: {
      if (rank < 2 || d == e) return;
      const int64_t offset = tape_.between(-1, 1);
      return add("diagonal", x.t.diagonal(offset, d, e), [=](const Shape& i) {
        Shape from(i.begin(), i.end() - 1);
        for (size_t k : {std::min(at, other), std::max(at, other)})
          from.insert(from.begin() + static_cast<std::ptrdiff_t>(k), 0);
        from[at] = i.back() + std::max<int64_t>(-offset, 0);
        from[other] = i.back() + std::max<int64_t>(offset, 0);
        return from;
      });
    }
    case 7: {  // several at once
      if (extent == 0) return;
      int64_t begin = 0;
      for (const Tensor& t : x.t.chunk(2, d)) {
        add("chunk(2)", t, [=](const Shape& i) { return with(i, at, begin + i[at]); });
        begin += t.size(d);
      }
      return;
    }
    default: {
      if (extent == 0) return;
      const int64_t size = 1 + tape_.below(extent), by = 1 + tape_.below(2);
      return add("unfold", x.t.unfold(d, size, by), [=](const Shape& i) {
        Shape from(i.begin(), i.end() - 1);
        from[at] = i[at] * by + i.back();
        return from;
      });
    }
  }
}

void Program::push_alias() {
  const Var x = pick();
  const std::string name = "v" + std::to_string(x.number);
  switch (tape_.below(3)) {
    case 0:
      return push(name + ".clone", x.t.clone(), fresh(x.w.sizes, read(x.w, x.w.sizes), x.w.grad()));
    case 1: {  // the same memory, a history of its own
      Twin w = x.w;
      w.history = std::make_shared<History>();
      w.history->slope.resize(w.memory->value.size());
      w.history->overlaps = overlaps_itself(w);
      return push(name + ".detach", x.t.detach(), std::move(w));
    }
    default:  // forgotten: views outlive their base
      if (vars_.size() > 2) {
        say("v" + std::to_string(x.number) + " is dropped");
        vars_.erase(std::find_if(vars_.begin(), vars_.end(),
                                 [&](const Var& v) { return v.number == x.number; }));
      }
  }
}

}  // namespace fuzz
}  // namespace ramet
