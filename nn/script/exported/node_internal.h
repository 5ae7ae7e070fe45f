// A node of an exported graph while it is printed.
#pragma once
#include "nn/script/exported/exported_internal.h"

namespace ramet::script {

struct ExportedPrinter::Node {
  Node(const Field& field, ExportedScope& scope, int indent, PrintedLines& into);
  /// "net.py:12 (node \"conv2d\" (torch.ops.aten.conv2d.default))"
  std::string place() const;
  void line(const std::string& text) { into.add(indent, text, origin); }
  void deeper(const std::string& text) { into.add(indent + 1, text, origin); }

  const Field& field;
  ExportedScope& scope;
  int indent;
  PrintedLines& into;
  std::string target;
  Source::Origin origin{0, "", 0};
  std::string shown;
  std::vector<Output> outputs;
};

}  // namespace ramet::script
