#include "tests/nn/formats/onnx_text.h"

#include <map>
#include <sstream>

#include "tests/nn/formats/proto_reader.h"

namespace ramet::testing {
namespace {

// Short lists of whole numbers, and single ones of float32, are shown where they are used.
std::map<std::string, std::string> small_lists(std::string_view graph) {
  std::map<std::string, std::string> lists;
  for (const ProtoField& t : fields_of(graph, 5)) {
    const std::string_view raw = text_of(t.text, 9);
    if (integer_of(t.text, 2) == 1 && raw.size() == 4 && fields_of(t.text, 1).empty()) {
      float v;
      std::memcpy(&v, raw.data(), 4);
      std::ostringstream number;
      number << v;
      lists[std::string(text_of(t.text, 8))] = number.str();
    }
    if (integer_of(t.text, 2) != 7 || raw.size() > 96) continue;
    std::string list;
    for (size_t i = 0; i < raw.size(); i += 8) {
      int64_t v;
      std::memcpy(&v, raw.data() + i, 8);
      list += (i ? " " : "") + std::to_string(v);
    }
    lists[std::string(text_of(t.text, 8))] = "[" + list + "]";
  }
  return lists;
}

std::string attribute(std::string_view a) {
  std::ostringstream out;
  out << ' ' << text_of(a, 1) << '=';
  const int64_t type = integer_of(a, 20);
  if (type == 1) out << real32(fields_of(a, 2).at(0));
  if (type == 2) out << integer_of(a, 3);
  if (type == 3) out << text_of(a, 4);
  const char* gap = "";
  if (type == 7)
    for (const ProtoField& f : fields_of(a, 8)) {
      out << gap << static_cast<int64_t>(f.integer);
      gap = ",";
    }
  if (type == 8)
    for (const ProtoField& f : fields_of(a, 9)) {
      out << gap << f.text;
      gap = ",";
    }
  return out.str();
}

std::string value_info(std::string_view v) {
  std::ostringstream out;
  const std::string_view type = text_of(text_of(v, 2), 1);
  out << text_of(v, 1) << " type " << integer_of(type, 1) << " [";
  const char* gap = "";
  const std::string_view shape = text_of(type, 2);
  for (const ProtoField& d : fields_of(shape, 1)) {
    const std::string name(text_of(d.text, 2));
    out << gap << (name.empty() ? std::to_string(integer_of(d.text, 1)) : name);
    gap = " ";
  }
  out << "]\n";
  return out.str();
}

}  // namespace

std::string onnx_text(const std::string& bytes) {
  const std::string_view graph = text_of(bytes, 7);
  const auto lists = small_lists(graph);
  std::string text;
  for (const ProtoField& i : fields_of(graph, 11)) text += "  input " + value_info(i.text);
  for (const ProtoField& n : fields_of(graph, 1)) {
    std::string line = "  ";
    for (const ProtoField& o : fields_of(n.text, 2)) line += std::string(o.text) + " ";
    line += "= " + std::string(text_of(n.text, 4)) + "(";
    const char* gap = "";
    for (const ProtoField& i : fields_of(n.text, 1)) {
      const auto list = lists.find(std::string(i.text));
      line += gap + (list == lists.end() ? std::string(i.text) : list->second);
      gap = ", ";
    }
    line += ")";
    for (const ProtoField& a : fields_of(n.text, 5)) line += attribute(a.text);
    text += line + "\n";
  }
  for (const ProtoField& o : fields_of(graph, 12)) text += "  output " + value_info(o.text);
  return text;
}

}  // namespace ramet::testing
