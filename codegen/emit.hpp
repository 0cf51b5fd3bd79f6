// Loop nests as CUDA C++: readable text, made without anything of CUDA.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nest/nest.hpp"
#include "schedule/schedule.hpp"
#include "schedule/target.hpp"
#include "size/size_scope.hpp"

namespace ein::codegen {

/// Stands for a nest's scratch memory where a program buffer is named.
inline constexpr int workspace_buffer = -1;

/// Describes a tensor to the hardware that copies tiles of it (cuTensorMapEncodeTiled): dimensions
/// from the innermost out, whose elements are neighbours. What lies outside reads as zeros. Tiles
/// are swizzled by 128 bytes.
struct TensorMap {
  int buffer = 0;
  Size offset = 0;  // in bytes
  DType dtype = DType::bf16;
  std::vector<Size> sizes;
  std::vector<Size> strides;       // in bytes, of all dimensions but the first
  std::vector<std::uint32_t> box;  // of a tile
  EIN_FIELDS(TensorMap, buffer, offset, dtype, sizes, strides, box)
  friend bool operator==(const TensorMap& a, const TensorMap& b);
};
/// As a kernel takes it (CUtensorMap).
using EncodedTensorMap = std::array<std::uint64_t, 16>;

/// A kernel and how to launch it. Its arguments, in order, which class Arguments makes:
/// - for each of `maps` the encoded map by value;
/// - if there is a `table`, a struct with the pointers to the first buffers, then numbers;
/// - for each of the other `buffers` a pointer: to the buffer's memory, or the workspace's, and
///   `offsets`
/// bytes
///   further on. Buffers and the workspace must be aligned to 16 bytes; text relies on that, and on
///   the offsets only modulo 16.
/// - if `checks_positions`, a pointer to a Fault, which is zeros before the launch;
/// - for each of `streams` its seed and its stream, unsigned 64-bit integers;
/// - for each of `constants` its value, in the type of computation, whose bits these are;
/// - for each of `sizes` its value, an integer of 32 or 64 bits.
///
/// Of nests whose sizes are formulas it is for all lengths, and put_sizes makes numbers of what a
/// launch has to know.
struct KernelSource {
  /// What a kernel leaves when a position lies outside its axis; of several one.
  struct Fault {
    std::int64_t happened = 0;  // 1 if so
    std::int64_t position = 0;
    std::int64_t size = 0;
    std::int64_t length = 0;
  };
  /// A random stream; one `of_run` takes the run's seed and counts from the run's stream.
  struct Stream {
    std::uint64_t seed = 0;
    std::uint64_t stream = 0;
    bool of_run = false;
    friend bool operator==(const Stream&, const Stream&) = default;
  };

  /// What is known of the pointer to each of `buffers`.
  struct Pointer {
    bool is_written = false;
    bool is_restricted =
        false;  // `__restrict__`: no other pointer leads to what is written through one of them
  };

  /// What a kernel looks up: pointers to the first buffers, and integers; how many of each.
  struct Table {
    std::size_t pointers = 0;
    std::vector<Size> numbers{};
    EIN_FIELDS(Table, pointers, numbers)
  };

  std::string name;              // extern "C"
  std::string text;              // a complete translation unit
  std::size_t kernel_begin = 0;  // where in `text` the vocabulary ends and the kernel begins
  Size blocks = 1;
  std::array<unsigned, 3> block{1, 1, 1};
  std::size_t shared_bytes = 0;  // dynamic
  Size workspace_bytes = 0;      // what the kernels of a nest share has the largest of these
  std::vector<TensorMap> maps;
  std::vector<int> buffers;
  std::vector<Size> offsets;
  std::vector<Pointer> pointers;
  Table table{};
  bool checks_positions = false;
  std::vector<Stream> streams;
  std::vector<std::uint64_t> constants;
  std::vector<Size> sizes;  // formulas, each of which the text knows by an argument

  /// The blocks as a grid. A dimension other than x is short; x holds all that indices of 32 bits
  /// can count.
  std::array<unsigned, 3> grid() const;
  EIN_FIELDS(KernelSource, name, text, kernel_begin, blocks, block, shared_bytes, workspace_bytes,
             maps, buffers, offsets, pointers, table, checks_positions, streams, constants, sizes)
};

/// The kernels that do what `nest` says, to be launched one after another; none if nothing is to be
/// written. Names end with `suffix`, so that kernels of several nests can share a translation unit.
/// The text depends on sizes, strides, dtypes and the expression alone. Results do not depend on
/// how threads are scheduled.
std::vector<KernelSource> emit(const LoopNest& nest, const GpuTarget& target = {},
                               std::string_view suffix = {});

/// One of the ways to do what a nest says.
struct Alternative {
  std::string name;  // of the tiles that it works by; empty where there is one way only
  std::vector<KernelSource> kernels;
};
/// The ways that are worth a try: the first is what emit() gives.
std::vector<Alternative> alternatives(const LoopNest& nest, const GpuTarget& target = {},
                                      std::string_view suffix = {});

/// What the processes of a mesh do together, between kernels, with values that lie without gaps. It
/// has no text; `before` and `after` are the copies from and to other places, if any are wanted.
struct CollectiveSource {
  struct Place {
    int buffer = 0;
    Size offset = 0;  // in bytes
    EIN_FIELDS(Place, buffer, offset)
  };
  Collective collective = Collective::all_reduce;
  std::uint32_t mesh_axes = 0;  // a bit for each
  DType dtype = DType::f32;
  Combine combine = Combine::sum;  // of all_reduce and reduce_scatter
  Size count = 0;                  // of elements, of a block where there are several
  Place from, to;
  std::vector<KernelSource> before{}, after{};
  EIN_FIELDS(CollectiveSource, collective, mesh_axes, dtype, combine, count, from, to, before,
             after)
};
CollectiveSource emit_collective(const LoopNest& nest, const GpuTarget& target,
                                 std::string_view suffix);

/// Whether there are kernels for heads of these sizes.
bool has_kernels_for(const Attention& attention);

/// The kernels that do what a group of a program's nests says: fused, where they can be.
std::vector<KernelSource> emit(const Program& program, const Program::Group& group,
                               const GpuTarget& target = {}, std::string_view suffix = {});

}  // namespace ein::codegen
