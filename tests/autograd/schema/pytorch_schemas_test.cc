// Every operator's schema against PyTorch 2.15's (goldens/pytorch_schemas.txt), and the page of
// what printed code calls (tools/compat/OPERATORS.md). RAMET_WRITE_GOLDENS=1 writes the page.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "autograd/schema/operators_internal.h"
#include "runtime/base/error.h"

namespace ramet::script {
namespace {

// Names that PyTorch's overloads are compared by: the text without the overload's name, and
// without what is written, which PyTorch's text names in more ways.
std::string comparable(const Operator& op) {
  Operator made = op;
  made.overload.clear();
  for (Parameter& parameter : made.parameters) {
    parameter.written = false;
    // A default of one number for all, or the list of them.
    if (!parameter.value || !parameter.value->isIntList() || parameter.repeat < 1) continue;
    if (parameter.value->toIntVector().size() == 1)
      parameter.value = std::vector<int64_t>(static_cast<size_t>(parameter.repeat),
                                             parameter.value->toIntVector()[0]);
  }
  return made.text();
}

// PyTorch's operators, by name. Those with types that Ramet lacks cannot be read.
std::map<std::string, std::set<std::string>> pytorch() {
  std::ifstream file("tests/autograd/schema/goldens/pytorch_schemas.txt");
  std::map<std::string, std::set<std::string>> made;
  for (std::string line; std::getline(file, line);) {
    try {
      const Operator op = parse_schema(line, nullptr);
      made[op.name].insert(comparable(op));
    } catch (const Error&) { made[line.substr(0, line.find_first_of(".("))]; }
  }
  return made;
}

TEST(PytorchSchemas, OperatorsAgree) {
  const auto theirs = pytorch();
  ASSERT_GT(theirs.size(), 800u);
  size_t compared = 0;
  for (const std::string& name : operator_names()) {
    const auto found = theirs.find(name);
    ASSERT_NE(found, theirs.end()) << name << " is not in goldens/pytorch_schemas.txt";
    for (const Operator* op : operators_named(name)) {
      ++compared;
      EXPECT_TRUE(found->second.count(comparable(*op)) == 1)
          << op->text() << "\nPyTorch has, with " << found->second.size() << " overloads, first:\n"
          << (found->second.empty() ? "" : *found->second.begin());
    }
  }
  EXPECT_GT(compared, 1400u);
}

// Two overloads with the same parameters: the second is never found.
TEST(PytorchSchemas, OverloadsDiffer) {
  for (const std::string& name : operator_names()) {
    std::set<std::string> seen;
    for (const Operator* op : operators_named(name))
      EXPECT_TRUE(seen.insert(comparable(*op)).second || name == "aten::numpy_T") << op->text();
  }
}

// Of ATen's core: how many overloads there are, and those that Ramet lacks.
struct Core {
  size_t count = 0;
  std::vector<std::string> absent;
};
Core core() {
  // The reader of .pt2 files has these under other names.
  const std::map<std::string, std::string> others = {
      {"aten::sym_size", "aten::size"},
      {"aten::sym_stride", "aten::stride"},
      {"aten::sym_numel", "aten::numel"},
      {"aten::sym_storage_offset", "aten::storage_offset"}};
  std::ifstream file("tests/autograd/schema/goldens/core_operators.txt");
  Core made;
  for (std::string line; std::getline(file, line); ++made.count) {
    const std::string shown = line.substr(0, line.find('('));
    const std::string name = shown.substr(0, shown.find('.'));
    const auto other = others.find(name);
    bool covered = other != others.end() && !operators_named(other->second).empty();
    try {
      const std::string theirs = comparable(parse_schema(line, nullptr));
      for (const Operator* op : operators_named(name)) covered |= comparable(*op) == theirs;
    } catch (const Error&) {}  // of types that Ramet lacks
    if (!covered) made.absent.push_back(shown.substr(6));
  }
  return made;
}

std::string absent_of_core() {
  std::string text;
  for (const std::string& name : core().absent)
    text.append(text.empty() ? "`" : ", `").append(name).append("`");
  return text;
}

TEST(PytorchSchemas, CoreIsCovered) {
  const Core found = core();
  EXPECT_GT(found.count, 180u);
  std::string absent;
  for (const std::string& name : found.absent) absent += name + " ";
  EXPECT_EQ(absent, "_fft_c2r _fft_r2c atan2.out ") << "complex numbers, and a given result";
}

std::string page() {
  const std::vector<std::string> names = operator_names();
  const std::set<std::string> ours(names.begin(), names.end());
  size_t overloads = 0;
  for (const std::string& name : names) overloads += operators_named(name).size();
  // Called, and how often; those that are there only to be refused when they are called.
  const std::map<std::string, const char*> refused = {
      {"aten::_nested_tensor_from_mask", "nested tensors"},
      {"aten::_upsample_lanczos2d_aa", "Lanczos filters"}};
  std::ifstream file("tests/autograd/schema/goldens/printed_calls.txt");
  int64_t calls = 0, covered = 0;
  size_t called = 0;
  std::ostringstream absent;
  int64_t count = 0;
  for (std::string name; file >> count >> name;) {
    calls += count, ++called;
    const auto why = refused.find(name);
    if (ours.count(name) == 1 && why == refused.end()) covered += count;
    else
      absent << "| `" << name << "` | " << count << " | "
             << (why != refused.end()
                     ? std::string("refused when it is called: there are no ") + why->second
                     : std::string("not yet"))
             << " |\n";
  }
  std::ostringstream rest;
  size_t uncovered = 0;
  for (const auto& [name, theirs] : pytorch())
    if (ours.count(name) == 0) rest << (uncovered++ % 6 == 0 ? "\n" : " ") << '`' << name << '`';
  std::ostringstream out;
  out << "# Operators of TorchScript\n\n"
      << "Written by `RAMET_WRITE_GOLDENS=1 bazel-bin/tests/autograd/schema/pytorch_schemas_test`: "
         "do "
         "not edit.\n\n"
      << "Ramet has " << names.size() << " operators with " << overloads
      << " overloads. Each has the name, order, defaults and by-name\n"
      << "parameters of one of PyTorch 2.15's "
         "(`tests/autograd/schema/goldens/pytorch_schemas.txt`).\n"
      << "Most are made of the rows of `autograd/ops`; `autograd/schema` has the others.\n\n"
      << "## What printed code calls\n\n"
      << "`tests/autograd/schema/goldens/printed_calls.py` scripts and traces networks: "
         "convolutional\n"
      << "ones, Transformers, taggers, a beam search, a detector, a PINN. It does so with BERT, "
         "GPT-2,\n"
      << "T5, and the layers of `torch.nn`, too. It counts the calls in their archives.\n\n"
      << "Calls covered: " << covered << " of " << calls << ", "
      << static_cast<double>(1000 * covered / calls) / 10 << " %. Operators called: " << called
      << ".\n\n| absent | calls | why |\n|---|---|---|\n"
      << absent.str() << "\n## ATen's core\n\n"
      << "`run_decompositions()` of torch.export leaves the operators of ATen's core. Covered: "
      << core().count - core().absent.size() << " of " << core().count
      << " overloads.\nAbsent: " << absent_of_core()
      << " (complex numbers; a given result).\n\n## Absent on purpose\n\n"
      << "- Writing into a given result (`out=`): traces and scripts of models do not have it.\n"
      << "- Complex numbers, sparse, quantised and nested tensors, names of dimensions, streams.\n"
      << "- Backward functions but those of ATen's core: gradients come from the forward "
         "functions.\n"
      << "- Dictionaries with tensors as keys.\n";
  if (uncovered > 0) out << "\nOf the operators in the list of schemas:\n" << rest.str() << '\n';
  return out.str();
}

TEST(PytorchSchemas, PageIsThat) {
  const char* const path = "tools/compat/OPERATORS.md";
  const std::string text = page();
  if (std::getenv("RAMET_WRITE_GOLDENS")) std::ofstream(path) << text;
  std::ostringstream stored;
  stored << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, stored.str()) << "RAMET_WRITE_GOLDENS=1 writes the page";
}

}  // namespace
}  // namespace ramet::script
