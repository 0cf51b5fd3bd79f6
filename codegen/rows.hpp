// What the parts of a kernel of rows share: the nests of a schedule's step, and which values come
// from outside or stay in registers.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "codegen/elements.hpp"

namespace ein::codegen {

/// The nests of a step whose units are rows, or pieces of rows, with all their points. A nest is
/// known by its number.
struct RowsGroup {
  RowsGroup(const Schedule& schedule, const Schedule::Step& step, int workspace);

  /// Whether the nest walks along the row.
  bool is_many(std::size_t m) const { return nests[m].axes.size() > row_axes.size(); }
  bool is_reduction(std::size_t m) const { return nests[m].reduces(); }
  /// What an expression of a nest reads, of its body or its epilogue.
  std::vector<std::size_t> reads_of(std::size_t m) const;

  std::vector<LoopNest> nests;
  std::vector<char> is_local;        // whether memory is wanted for a nest's result
  AxisList row_axes, axes;           // of a row's number, and within it
  const LoopNest* whole = nullptr;   // a nest with all axes
  std::map<int, std::size_t> maker;  // of each buffer that the group writes
  /// A nest's level is the number of combinations that have to be done before it.
  std::vector<std::size_t> level;
  std::size_t levels = 0;  // the last
};

/// The input that says where an indirect operand's elements are.
const LoopNest::Operand* positions_of(const LoopNest& nest, const LoopNest::Operand& operand);

/// How threads are laid over the rows of a step.
struct RowsPlan : Schedule::Threads {
  RowsPlan(const RowsGroup& group, const Schedule::Step& step);

  Size rows, elements;         // of each row
  Size pieces = 1, piece = 1;  // of a row, and elements of each
  std::int64_t packs = 1;      // of each lane, if they are unrolled
  std::int64_t rows_per_block() const { return threads / lanes; }
};

/// Values from outside, in the type of a computation.
struct RowsSource {
  const LoopNest::Operand* operand = nullptr;
  const LoopNest::Operand* positions = nullptr;
  DType compute = DType::f32;
  bool is_many = false;  // not the same for the whole row
  bool is_held = false;
};

/// Where the nests' values are: read from outside, kept in registers from pass to pass, or computed
/// where they are used.
class RowsValues {
 public:
  RowsValues(const RowsGroup& group, const RowsPlan& plan);

  /// What a pass evaluates, and what it reads for that.
  struct Needs {
    std::set<std::size_t> nests, sources;
  };
  Needs needs_of(std::size_t level) const;

  const std::vector<RowsSource>& sources() const { return sources_; }
  /// The number of the source of a nest's input that comes from outside.
  std::size_t source_of(std::size_t m, std::size_t input) const { return source_[m][input]; }
  /// Nests whose values stay in registers.
  const std::set<std::size_t>& held() const { return held_; }

 private:
  void find_sources();
  void add_needs(std::size_t m, std::size_t level, Needs& needs) const;
  bool is_needed_later(std::size_t m) const;
  void choose_held(const RowsPlan& plan);

  const RowsGroup& group_;
  std::vector<RowsSource> sources_;
  std::vector<std::vector<std::size_t>> source_;  // of each nest's inputs
  std::set<std::size_t> held_;
};

/// Writes the kernel's arguments and what brings values to a thread. In the text s0, s1, ... are
/// the values of sources, h0, h1, ... those of nests that are held, w0, w1, ... those of other
/// nests at an element and r0, r1, ... those of nests that have one for each row; p is the pack at
/// hand and j the element in it.
class RowsReader {
 public:
  RowsReader(Writer& writer, const RowsGroup& group, const RowsPlan& plan,
             const RowsValues& values);

  void declare_arguments();
  void declare_held();

  void load(std::size_t source);
  /// Loads what a nest reads that is the same for the whole row.
  void load_scalars(std::size_t m);
  /// The value of input i of a nest, in the type of the nest.
  std::string input(std::size_t m, std::size_t i) const;
  std::vector<std::string> inputs(std::size_t m, const std::vector<std::size_t>& reads) const;
  /// The name of a nest's value at the element at hand, or of the row.
  std::string value_of(std::size_t m) const;

  // --- packs ---
  void open_pack();
  /// The subscript of an array that holds a pack: "[p][4]" in its declaration and in its uses.
  std::string pack() const;
  std::string at_j() const { return plan_.width > 1 ? "[j]" : ""; }
  /// Where an operand's element j of a pack lies.
  std::string place_of_j(const LoopNest::Operand& operand) const;

 private:
  struct Argument {
    std::size_t pointer = 0, positions_pointer = 0;
  };
  std::size_t pointer(const LoopNest::Operand& operand);
  bool is_pack(const RowsSource& source) const;
  bool is_at_once(const RowsSource& source) const;
  void load_at_once(std::size_t s, const std::string& to);
  std::string element_of(std::size_t s, bool in_pack);
  std::string read_position(std::size_t s, const std::string& place);
  std::string moved(const RowsSource& source, const std::string& position,
                    const std::string& place) const;

  Writer& w_;
  const RowsGroup& group_;
  const RowsPlan& plan_;
  const RowsValues& values_;
  std::vector<const LoopNest::Operand*> pointers_;
  std::vector<Argument> arguments_;  // of each source
  std::vector<char> is_there_;       // which sources are loaded for good
};

}  // namespace ein::codegen
