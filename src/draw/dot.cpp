#include "draw/dot.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

std::string quoted(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return "\"" + result + "\"";
}

}  // namespace

std::string to_dot(const Graph& graph) {
  std::string text = "digraph ein {\n  node [shape=box, fontname=monospace];\n";
  for (std::size_t id = 0; id < graph.ops.size(); ++id) {
    const Op& op = graph.ops[id];
    const std::string label = "%" + std::to_string(id) + " = " + to_string(op);
    text += "  v" + std::to_string(id) + " [label=" + quoted(label) +
            (op.kind == OpKind::input ? ", style=rounded" : "") + "];\n";
    for (ValueId input : op.inputs)
      text += "  v" + std::to_string(input) + " -> v" + std::to_string(id) + ";\n";
  }
  for (const Assignment& a : graph.assignments) {
    text += "  v" + std::to_string(a.value) + " -> v" + std::to_string(a.target) +
            " [style=dashed, constraint=false, label=assign];\n";
  }
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    text += "  r" + std::to_string(o) + " [label=\"result\", style=rounded];\n  v" +
            std::to_string(graph.outputs[o]) + " -> r" + std::to_string(o) + ";\n";
  }
  return text + "}\n";
}

}  // namespace ein
