// A recording of a script: nodes show the Python line, which the explorer's panel calls "made by".
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "autograd/ops.h"
#include "nn/script/script.h"
#include "tools/see/recording.h"
#include "tools/see/recording_file.h"

namespace ramet {
namespace see {
namespace {

TEST(ScriptRecording, NodesShowThePythonLine) {
  const auto net = script::load("tests/nn/script/goldens/mlp_scripted.pt");
  Recording recording;
  recording.watch(*net);
  const Tensor y = nn::call(*net, randn({2, 5}));
  y.sum().backward();
  const RecordingData data = recording.data();
  std::set<std::string> functions;
  size_t nodes = 0, lines = 0;
  for (const OperationRow& op : data.operations) {
    if (op.node < 0) continue;
    ++nodes;
    if (op.name == "sum") {
      EXPECT_EQ(op.source, -1);  // the program's own
      continue;
    }
    ASSERT_GE(op.source, 0) << op.name;
    const SourceRow& source = data.sources[static_cast<size_t>(op.source)];
    EXPECT_TRUE(source.file.size() > 3 && source.file.substr(source.file.size() - 3) == ".py")
        << source.file;
    EXPECT_GT(source.line, 0);
    functions.insert(source.function);
    ++lines;
    EXPECT_NE(op.scope.find(source.file), op.scope.npos) << op.scope;
    ASSERT_GE(op.module, 0);
  }
  EXPECT_EQ(nodes, lines + 1);
  EXPECT_GE(lines, 6u);  // three layers, two activations, log_softmax
  const std::string layer = "__torch__.torch.nn.modules.linear.";
  EXPECT_EQ(std::count_if(functions.begin(), functions.end(),
                          [&](const std::string& f) { return f.rfind(layer, 0) == 0; }),
            3);
  // A second copy is the same, and so is the file's.
  EXPECT_EQ(recording.data().sources, data.sources);
}

}  // namespace
}  // namespace see
}  // namespace ramet
