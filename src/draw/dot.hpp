// A graph as a picture.
#pragma once

#include <string>

#include <ein/graph.hpp>

namespace ein {

/// In Graphviz's language: a box for each operation, labelled with its pattern or formula, dtype
/// and shape.
std::string to_dot(const Graph& graph);

}  // namespace ein
