// Observers of the graph get the arguments that an operation was called with.
#include "autograd/graph/arguments.h"

#include <map>
#include <mutex>

#include "autograd/autograd.h"
#include "autograd/graph/graph_observer.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

using autograd::Arguments;
using autograd::Input;

// The arguments of each node's last operation, copied.
struct Copies : autograd::GraphObserver {
  void on_operation(autograd::Node& node, ArrayRef<Input>, ArrayRef<Input>,
                    const Arguments& arguments) override {
    const std::lock_guard<std::mutex> lock(mutex);
    last[node.name()] = arguments;
  }
  const Arguments& of(const char* node) const {
    static const Arguments none;
    const auto found = last.find(node);
    EXPECT_NE(found, last.end()) << node;
    return found == last.end() ? none : found->second;
  }
  std::mutex mutex;
  std::map<std::string, Arguments> last;
};

struct ArgumentsTest : testing::Test {
  const std::shared_ptr<Copies> copies = std::make_shared<Copies>();
  const autograd::GraphObserverGuard guard{copies};
  const Tensor x = ones({2, 3}).requires_grad_();
  using List = std::vector<int64_t>;
};

TEST_F(ArgumentsTest, NumbersOfPointwiseOperations) {
  x.add(1, 0.5), x.add(x, 3), (2 - x), x.pow(3), pow(Scalar(2), x), x.clamp(-1, std::nullopt);
  EXPECT_EQ(copies->of("AddBackward1").number("other"), 1.);
  EXPECT_EQ(copies->of("AddBackward1").number("number"), 0.5);
  EXPECT_EQ(copies->of("AddBackward0").number("number"), 3.);
  EXPECT_EQ(copies->of("RsubBackward1").number("other"), 2.);
  EXPECT_EQ(copies->of("PowBackward0").number("exponent"), 3.);
  EXPECT_EQ(copies->of("PowBackward2").number("self"), 2.);
  EXPECT_EQ(copies->of("ClampMinBackward0").number("min"), -1.);
  EXPECT_EQ(copies->of("ClampMinBackward0").number("max"), std::nullopt);
  x.square();
  EXPECT_EQ(copies->of("PowBackward0").number("exponent"), 2.);
  leaky_relu(x, 0.25), softplus(x, 3, 7);
  EXPECT_EQ(copies->of("LeakyReluBackward0").number("number"), 0.25);
  EXPECT_EQ(copies->of("SoftplusBackward0").number("number", 0), 3.);
  EXPECT_EQ(copies->of("SoftplusBackward0").number("number", 1), 7.);
}

TEST_F(ArgumentsTest, OfInPlaceForms) {
  const Tensor y = x * 1;
  y.add_(4, 2), y.mul_(3), y.masked_fill_(y.gt(0), 7);
  EXPECT_EQ(copies->of("AddBackward1").number("other"), 4.);
  EXPECT_EQ(copies->of("AddBackward1").number("number"), 2.);
  EXPECT_EQ(copies->of("MulBackward1").number("other"), 3.);
  EXPECT_EQ(copies->of("MaskedFillBackward0").number("value"), 7.);
  EXPECT_TRUE(copies->of("MaskedFillBackward0").tensor("mask").all().item<bool>());
}

TEST_F(ArgumentsTest, DimensionsOfReductionsJoinsAndViews) {
  x.sum(IntArrayRef{-1}, true), x.mean(), x.softmax(0), cat({x, x}, 1), stack({x, x}, -1);
  x.select(1, -1), x.slice(1, 0, 3, 2), x.transpose(0, 1), x.permute({1, 0}), x.split(2, 1);
  EXPECT_EQ(copies->of("SumBackward1").integers("dim"), List{1});
  EXPECT_TRUE(copies->of("SumBackward1").flag("keepdim"));
  EXPECT_EQ(copies->of("MeanBackward0").integers("dim"), (List{0, 1}));
  EXPECT_EQ(copies->of("SoftmaxBackward0").integer("dim"), 0);
  EXPECT_EQ(copies->of("CatBackward0").integer("dim"), 1);
  EXPECT_EQ(copies->of("StackBackward0").integer("dim"), 2);
  EXPECT_EQ(copies->of("SelectBackward0").integer("index"), 2);
  EXPECT_EQ(copies->of("SliceBackward0").integer("step"), 2);
  EXPECT_EQ(copies->of("TransposeBackward0").integer("dim1"), 1);
  EXPECT_EQ(copies->of("PermuteBackward0").integers("dims"), (List{1, 0}));
  EXPECT_EQ(copies->of("SplitBackward0").integer("dim"), 1);
  EXPECT_THROW(copies->of("SumBackward1").integer("dim"), Error) << "it is a list";
  EXPECT_THROW(copies->of("SumBackward1").integers("axis"), Error);
}

// A backward that runs a backward, and one that is recorded itself.
TEST_F(ArgumentsTest, OfWhatABackwardRecords) {
  const Tensor g = autograd::grad({x.pow(3).sum()}, {x}, {}, true, true)[0];
  copies->last.clear();
  autograd::grad({g.sum()}, {x}, {}, true, true);
  EXPECT_EQ(copies->of("MulBackward1").number("other"), 2.) << "d(x^2) = 2 x";
}

TEST_F(ArgumentsTest, AsText) {
  x.softmax(1), x.clamp(-1, std::nullopt), x.add(1, 0.5);
  EXPECT_EQ(copies->of("SoftmaxBackward0").str(), "dim=1");
  EXPECT_EQ(copies->of("ClampMinBackward0").str(), "min=-1");
  EXPECT_EQ(copies->of("AddBackward1").str(), "other=1, number=0.5");
  Arguments all;
  all("flag", true), all("text", "mean"), all("list", List{2, 3}), all("weight", x);
  all("absent", std::optional<int64_t>()), all("nothing", Tensor());
  EXPECT_EQ(all.str(), "flag=true, text='mean', list=[2, 3], weight=float32[2, 3], nothing=none");
  EXPECT_EQ(Arguments().str(), "");
}

// Observers that override on_node_made() alone get each node.
TEST(Arguments, AnObserverOfNodesIsToldOfOperations) {
  struct Counts : autograd::GraphObserver {
    void on_node_made(autograd::Node& node, ArrayRef<Input> in, ArrayRef<Input>) override {
      if (node.name() == "SoftmaxBackward0") made += static_cast<int>(in.size());
    }
    int made = 0;
  };
  const auto counts = std::make_shared<Counts>();
  {
    const autograd::GraphObserverGuard guard(counts);
    ones({2, 3}).requires_grad_().softmax(1);
  }
  ones({2, 3}).requires_grad_().softmax(1);
  EXPECT_EQ(counts->made, 1);
}

}  // namespace
}  // namespace ramet
