// Where each axis of a graph lies on a mesh, found from where the inputs lie.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ein/error.hpp>
#include <ein/graph.hpp>

namespace ein {

/// Dimensions of values, and axes of operations, that meet are one class and lie alike: see
/// distribute.hpp, whose arguments and errors these are.
class PlacementClasses {
 public:
  PlacementClasses(const std::string& call, const Graph& graph, std::span<const MeshAxis> mesh,
                   std::span<const Placement> inputs,
                   std::span<const std::optional<Placement>> outputs);

  Placement placement(std::size_t value) const;
  Placement::Split of_dim(ValueId value, std::size_t dim) const;
  Placement::Split of_axis(std::size_t op, std::size_t axis) const;

 private:
  struct Reason;
  struct Seed;

  void unite_all();
  void unite_op(std::size_t id);
  void unite_access(std::size_t id, ValueId value, const Access& access, int free_dim);
  void unite_values(ValueId a, ValueId b);
  void seed_all(std::span<const Placement> inputs,
                std::span<const std::optional<Placement>> outputs);
  void check_all() const;
  void check_op(std::size_t id) const;

  Placement::Split of_node(std::size_t node) const;
  std::size_t dim_node(ValueId value, std::size_t dim) const;
  std::size_t axis_node(std::size_t op, std::size_t axis) const;
  std::size_t root(std::size_t node) const;
  void unite(std::size_t a, std::size_t b);
  void seed(std::size_t node, Seed seed);
  void need_whole(std::size_t node, std::string why);

  // Of errors: placement_messages.cpp.
  /// A place in the call's pattern, and what stands under its carets.
  struct Place {
    SourceSpan span;
    std::string label;
  };
  [[noreturn]] void refuse(const Seed& known, const Seed& other) const;
  [[noreturn]] void complain(ErrorKind kind, const std::string& what, std::vector<Place> places,
                             std::vector<std::string> notes) const;
  std::optional<Place> place_of(const Seed& seed) const;
  std::vector<Place> places_of(const std::vector<std::string>& names,
                               const std::string& label) const;
  std::string way_to_divide(Size size, std::int64_t parts) const;
  std::string where(const Seed& seed) const;
  std::string way_out(const Seed& seed, const Placement::Split& wanted) const;
  std::string way_out_of(std::size_t id, const std::string& name, int mesh_axis) const;
  std::string name_of(const Seed& a, const Seed& b) const;
  std::vector<std::string> names_of(ValueId value) const;
  std::string text(const Placement::Split& split) const;

  const std::string& call_;
  const Graph& graph_;
  std::span<const MeshAxis> mesh_;
  std::vector<std::size_t> first_dim_, first_axis_;
  mutable std::vector<std::size_t> parent_;
  std::vector<std::optional<Seed>> seeds_;  // of roots
  struct Need {
    std::size_t node;
    std::string why;
  };
  std::vector<Need> needs_;  // of what must be whole
  std::vector<Placement> placed_inputs_;
};

/// Why a class lies as it does: a dimension of an input, of an output, or of a reshard's operand or
/// result; or an operation that needs it whole.
struct PlacementClasses::Seed {
  enum Kind { input, output, reshard, need } kind = need;
  Placement::Split split{};
  ValueId value = -1;
  std::size_t dim = 0;
  std::size_t number = 0;  // of the input or output
  std::string why{};       // need
};

}  // namespace ein
