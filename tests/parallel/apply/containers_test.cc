// Containers of tensors are taken apart and put together. Every kind keeps its shape, its keys and
// its order, and an error names the place inside it.
#include "parallel/apply/containers.h"

#include <gtest/gtest.h>

#include "nn/module/ordered_dict.h"
#include "parallel/apply/join.h"
#include "parallel/apply/spread.h"
#include "tests/parallel/support.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;

using TensorDict = OrderedDict<std::string, Tensor>;

struct Sample {
  Tensor image, label;
  std::vector<Tensor> more;
  RAMET_FIELDS(image, label, more)
};

Tensor part(double first) { return make({first, first + 1}); }

// Two replicas, two elements each.
ScatterPlan halves() {
  ScatterPlan plan;
  plan.devices = many(2);
  plan.sizes = {2, 2};
  return plan;
}

// What became of 0, 1, 2, 3 on replica r.
void expect_half(const Tensor& t, size_t r) {
  EXPECT_EQ(values(t), r == 0 ? (Values{0, 1}) : (Values{2, 3}));
  EXPECT_EQ(t.device(), d(static_cast<int>(r)));
}

template <class T> auto scattered(const T& value) {
  auto parts = Spread<T>::parts(value, halves(), How::scatter);
  EXPECT_EQ(parts.size(), 2u);
  return parts;
}
template <class T> auto joined(std::vector<T> parts) {
  return Join<T>::whole(parts, GatherPlan(), "result");
}

// The message for a second tensor with another extent; it names both paths.
template <class T> std::string lengths(const T& value) {
  return error_of([&] {
    Extent extent(0);
    Spread<T>::measure(value, extent, "x");
  });
}
bool names(const std::string& text, const std::string& first, const std::string& second) {
  return contains(text, "got 3 for " + second + " and 4 for " + first + ";");
}

TEST(Containers, Scatter) {
  const Tensor x = counting({4});
  const auto list = scattered(std::vector<Tensor>{x, x});
  const auto two = scattered(std::make_pair(x, x));
  const auto three = scattered(std::make_tuple(x, 7, x));
  const auto fixed = scattered(std::array<Tensor, 2>{x, x});
  const auto map = scattered(std::map<int, Tensor>{{4, x}, {2, x}});
  const auto hash = scattered(std::unordered_map<std::string, Tensor>{{"a", x}, {"b", x}});
  const auto dict = scattered(TensorDict{{"z", x}, {"a", x}});
  const auto maybe = scattered(std::optional<Tensor>(x));
  const auto none = scattered(std::optional<Tensor>());
  const auto sample = scattered(Sample{x, x, {x, x}});
  for (size_t r = 0; r < 2; ++r) {
    ASSERT_EQ(list[r].size(), 2u);
    for (size_t i = 0; i < 2; ++i) expect_half(list[r][i], r), expect_half(fixed[r][i], r);
    expect_half(two[r].first, r), expect_half(two[r].second, r);
    expect_half(std::get<0>(three[r]), r), expect_half(std::get<2>(three[r]), r);
    EXPECT_EQ(std::get<1>(three[r]), 7);
    ASSERT_EQ(map[r].size(), 2u);
    expect_half(map[r].at(4), r), expect_half(map[r].at(2), r);
    ASSERT_EQ(hash[r].size(), 2u);
    expect_half(hash[r].at("a"), r), expect_half(hash[r].at("b"), r);
    EXPECT_EQ(dict[r].keys(), (std::vector<std::string>{"z", "a"})) << "in the order of insertion";
    expect_half(dict[r]["z"], r), expect_half(dict[r]["a"], r);
    expect_half(maybe[r].value(), r);
    EXPECT_FALSE(none[r].has_value());
    expect_half(sample[r].image, r), expect_half(sample[r].label, r);
    ASSERT_EQ(sample[r].more.size(), 2u);
    expect_half(sample[r].more[1], r);
  }
}

TEST(Containers, ScatterErrorsNameThePlace) {
  const Tensor x = counting({4}), y = counting({3});
  const std::string list = lengths(std::vector<Tensor>{x, x, y}),
                    two = lengths(std::make_pair(x, y)), three = lengths(std::make_tuple(x, 7, y)),
                    fixed = lengths(std::array<Tensor, 2>{x, y}),
                    map = lengths(std::map<int, Tensor>{{2, x}, {4, y}}),
                    dict = lengths(TensorDict{{"z", x}, {"a", y}}),
                    second = lengths(Sample{x, y, {}}), third = lengths(Sample{x, x, {x, y}}),
                    nested =
                        lengths(std::make_tuple(x, std::make_pair(1, std::optional<Tensor>(y))));
  EXPECT_TRUE(names(list, "x[0]", "x[2]")) << list;
  EXPECT_TRUE(names(two, "x.first", "x.second")) << two;
  EXPECT_TRUE(names(three, "x[0]", "x[2]")) << three;
  EXPECT_TRUE(names(fixed, "x[0]", "x[1]")) << fixed;
  EXPECT_TRUE(names(map, "x[2]", "x[4]")) << map;
  EXPECT_TRUE(names(dict, "x['z']", "x['a']")) << dict;
  EXPECT_TRUE(names(second, "x.image", "x.label")) << second;
  EXPECT_TRUE(names(third, "x.image", "x.more[1]")) << third;
  EXPECT_TRUE(names(nested, "x[0]", "x[1].second")) << nested;
}

TEST(Containers, Gather) {
  const Tensor a = part(0), b = part(2), c = part(4), e = part(6);
  const Values first = {0, 1, 2, 3}, second = {4, 5, 6, 7};
  const auto list = joined<std::vector<Tensor>>({{a, c}, {b, e}});
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(values(list[0]), first);
  EXPECT_EQ(values(list[1]), second);
  const auto two = joined<std::pair<Tensor, Tensor>>({{a, c}, {b, e}});
  EXPECT_EQ(values(two.first), first);
  EXPECT_EQ(values(two.second), second);
  const auto three = joined<std::tuple<Tensor, int, Tensor>>({{a, 7, c}, {b, 8, e}});
  EXPECT_EQ(values(std::get<0>(three)), first);
  EXPECT_EQ(std::get<1>(three), (std::vector<int>{7, 8})) << "what is no tensor becomes a list";
  EXPECT_EQ(values(std::get<2>(three)), second);
  using Fixed = std::array<Tensor, 2>;
  const auto fixed = joined<Fixed>({Fixed{a, c}, Fixed{b, e}});
  EXPECT_EQ(values(fixed[0]), first);
  EXPECT_EQ(values(fixed[1]), second);
  using Map = std::map<int, Tensor>;
  const auto map = joined<Map>({Map{{4, a}, {2, c}}, Map{{2, e}, {4, b}}});
  ASSERT_EQ(map.size(), 2u);
  EXPECT_EQ(values(map.at(4)), first);
  EXPECT_EQ(values(map.at(2)), second);
  const auto dict =
      joined<TensorDict>({TensorDict{{"z", a}, {"a", c}}, TensorDict{{"a", e}, {"z", b}}});
  EXPECT_EQ(dict.keys(), (std::vector<std::string>{"z", "a"})) << "in the order of replica 0";
  EXPECT_EQ(values(dict["z"]), first);
  EXPECT_EQ(values(dict["a"]), second);
  const auto maybe = joined<std::optional<Tensor>>({a, b});
  EXPECT_EQ(values(maybe.value()), first);
  const auto sample = joined<Sample>({Sample{a, c, {a}}, Sample{b, e, {b}}});
  EXPECT_EQ(values(sample.image), first);
  EXPECT_EQ(values(sample.label), second);
  ASSERT_EQ(sample.more.size(), 1u);
  EXPECT_EQ(values(sample.more[0]), first);
}

TEST(Containers, GatherErrorsNameThePlace) {
  const Tensor a = part(0), wide = counting({2, 2});
  const auto text = [](auto parts) { return error_of([&] { joined(parts); }); };
  using List = std::vector<Tensor>;
  using Maybe = std::optional<Tensor>;
  EXPECT_ERROR_TEXT(joined<List>({{a, a}, {a}}),
                    "result: replica 1 has 1 elements, replica 0 has 2");
  EXPECT_ERROR_TEXT(joined<Maybe>({a, std::nullopt}),
                    "result: replica 1 has none, replica 0 has one");
  EXPECT_ERROR_TEXT(
      joined<TensorDict>({TensorDict{{"a", a}}, TensorDict{{"a", a}, {"b", a}}}),
      "result: All dicts must have the same number of keys: replica 1 has 2, replica 0 "
      "has 1");
  EXPECT_ERROR_TEXT(joined<TensorDict>({TensorDict{{"a", a}}, TensorDict{{"b", a}}}),
                    "result['a']: replica 1 has no such key, replica 0 has");
  expect_part(text(std::vector<std::pair<Tensor, Tensor>>{{a, a}, {a, wide}}), "result.second: ");
  expect_part(text(std::vector<Sample>{{a, a, {}}, {a, wide, {}}}), "result.label: ");
  expect_part(text(std::vector<Sample>{{a, a, {a}}, {a, a, {wide}}}), "result.more[0]: ");
  EXPECT_ERROR_TEXT(joined<Tensor>({a, Tensor()}),
                    "result: 1 of 2 replicas returned an undefined tensor, expected all or none");
}

}  // namespace
}  // namespace ramet
