// A collective of shm, step by step.
//
// A collective is done in pieces of what fits a slot. Of each piece a process
//
//   stages    copies into its slot what others want of its operand,
//   combines  its share of the result, from all processes' slots; all_reduce puts it into its slot,
//   takes     what all have staged or combined.
//
// A send is staged by one process and taken by the other, in posts that are for sends in that
// direction alone.
//
// A piece may be staged before the others are done with the one before: there are several slots. A
// step is done once the others are so far, so that nobody waits in the middle of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mesh/shared_memory.hpp"
#include "mesh/transport.hpp"

namespace ein::mesh {

/// A group of processes as one of them sees it.
struct Posts {
  std::vector<Post*> of;   // each process, in the group's order
  std::size_t own;         // the place of this one
  std::vector<int> ranks;  // in the transport
};

class Steps {
 public:
  /// Of a collective that begins with piece `base` of its group.
  Steps(const Request& request, const Posts& posts, std::uint64_t base);

  /// Does one step if the others are so far, and tells them. Whether it did. An Error of kind
  /// `value` if another process started another collective.
  bool advance();
  bool is_done() const { return taken_ == pieces_; }
  std::uint64_t pieces() const { return pieces_; }
  /// The places in the group of the processes that are not so far as the next step needs them.
  std::vector<std::size_t> waits_for() const;

 private:
  using Progress = std::atomic<std::uint64_t> Post::*;

  /// Elements [begin, begin + count) of `Request::count`, which are a piece.
  struct Piece {
    std::uint64_t number;  // since the group began
    std::int64_t begin, count;
  };
  Piece piece(std::uint64_t k) const;
  std::byte* slot(std::size_t member, const Piece& piece) const;
  /// Where the share of a member begins in a piece of all_reduce.
  std::int64_t share_begin(std::size_t member, const Piece& piece) const;
  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count) * element_; }

  bool all_have(Progress progress, std::uint64_t pieces) const;
  bool may_stage() const;
  bool may_combine() const;
  bool may_take() const;
  void check_signatures() const;

  void stage(const Piece& piece) const;
  void combine(const Piece& piece) const;
  void take(const Piece& piece) const;
  /// To the result, from `offset` bytes on.
  void copy_result(std::size_t offset, const std::byte* from, std::size_t bytes) const;
  void publish(Progress progress, std::uint64_t pieces) const;

  Request request_;
  const Posts& posts_;
  std::uint64_t base_;
  std::size_t members_, element_;
  std::int64_t per_piece_;
  bool is_small_;  // all_reduce by everybody of everything, which takes a step less
  bool combines_, takes_;
  bool streams_;  // the result around the caches, which are too small for it
  std::uint64_t pieces_, staged_ = 0, combined_ = 0, taken_ = 0;
};

}  // namespace ein::mesh
