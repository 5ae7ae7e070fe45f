// The tests' programs of torch.export (goldens/make_exported.py): what PyTorch computes with them,
// and the errors of changed files.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "nn/formats/pytorch/pt.h"
#include "nn/formats/zip/zip_internal.h"
#include "nn/script/script.h"

namespace ramet::exported_files {

inline const std::string kFolder = "tests/nn/script/goldens/exported/";

inline std::string exported_file(const std::string& name, const std::string& version = "2.15") {
  return kFolder + name + "_" + version + ".pt2";
}

// A program, and what PyTorch computes with it.
struct Exported {
  explicit Exported(const std::string& name, const std::string& version = "2.15")
      : net(jit::load(exported_file(name, version))),
        row(formats::load_pt(kFolder + "values_" + version + ".pt")
                .toGenericDict()
                .at(name)
                .toGenericDict()) {}

  // Copies: a program may write its inputs.
  static IValue copied(const IValue& value) {
    if (value.isTensor()) return value.toTensor().clone();
    if (value.isTuple()) {
      std::vector<IValue> items;
      for (const IValue& v : value.toTupleRef().elements()) items.push_back(copied(v));
      return IValue::Tuple::create(std::move(items));
    }
    if (value.isList()) {
      std::vector<IValue> items = value.toList().vec();
      bool tensors = !items.empty();
      for (IValue& v : items) v = copied(v), tensors = tensors && v.isTensor();
      if (!tensors) return IValue::GenericList(items);
      std::vector<Tensor> list;
      for (const IValue& v : items) list.push_back(v.toTensor());
      return list;
    }
    if (value.isGenericDict()) {
      IValue::GenericDict dict;
      for (const auto& entry : value.toGenericDict())
        dict.insert_or_assign(entry.key(), copied(entry.value()));
      return dict;
    }
    return value;
  }
  IValue run(const jit::Module& module) const {
    std::vector<IValue> arguments;
    for (const IValue& v : row.at("args").toList().vec()) arguments.push_back(copied(v));
    jit::Kwargs by_name;
    for (const auto& entry : row.at("kwargs").toGenericDict())
      by_name[entry.key().toStringRef()] = entry.value();
    return module(arguments, by_name);
  }

  jit::Module net;
  IValue::GenericDict row;
};

inline std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) { return error.what(); }
  return "";
}
inline void expect_error(const std::function<void()>& run, const std::vector<std::string>& parts) {
  const std::string error = error_of(run);
  for (const std::string& part : parts)
    EXPECT_NE(error.find(part), std::string::npos) << part << " is not in: " << error;
}

// A golden with one entry changed.
inline std::string changed(const std::string& name, const std::string& entry,
                           const std::function<void(std::string&)>& change) {
  formats::detail::ZipReader zip("test", exported_file(name));
  std::vector<std::string> texts;
  texts.reserve(zip.entries().size());
  std::vector<formats::detail::ZipPart> parts;
  for (const auto& e : zip.entries()) {
    texts.push_back(zip.text(e));
    if (e.name.find(entry) != std::string::npos) change(texts.back());
    parts.push_back({e.name, {{texts.back().data(), texts.back().size()}}});
  }
  const std::vector<char> bytes = formats::detail::zip_bytes("test", parts, /*deflate=*/false);
  return {bytes.begin(), bytes.end()};
}
inline void replace_all(std::string& text, const std::string& from, const std::string& to) {
  ASSERT_NE(text.find(from), std::string::npos) << from;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}
inline std::string error_with(const std::string& name, const std::string& entry,
                              const std::string& from, const std::string& to) {
  return error_of([&] {
    std::istringstream in(changed(name, entry, [&](std::string& t) { replace_all(t, from, to); }));
    jit::load(in);
  });
}

}  // namespace ramet::exported_files
