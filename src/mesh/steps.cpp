#include "mesh/steps.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "cpu/level.hpp"
#include "machine/cache.hpp"
#include "mesh/combine.hpp"
#include "size/ask.hpp"

namespace ein::mesh {
namespace {

/// The largest all_reduce of which each process combines the whole itself: that is cheaper than a
/// second exchange.
constexpr std::int64_t small_bytes = 16 << 10;

/// Elements that shares and pieces are multiples of, so that none begins inside a cache line.
constexpr std::int64_t unit = 64;

std::uint64_t operation_of(const Request& request) {
  return static_cast<std::uint64_t>(request.collective) |
         static_cast<std::uint64_t>(request.dtype) << 8 |
         static_cast<std::uint64_t>(request.combine) << 16;
}
Request request_of(const Signature& signature) {
  Request request;
  request.collective = static_cast<Collective>(signature.operation & 0xFF);
  request.dtype = static_cast<DType>(signature.operation >> 8 & 0xFF);
  request.combine = static_cast<Combine>(signature.operation >> 16 & 0xFF);
  request.count = signature.count;
  return request;
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

Steps::Steps(const Request& request, const Posts& posts, std::uint64_t base)
    : request_(request),
      posts_(posts),
      base_(base),
      members_(posts.of.size()),
      element_(size_of(request.dtype)) {
  const bool is_all_reduce = request.collective == Collective::all_reduce;
  const bool has_blocks = request.collective == Collective::reduce_scatter ||
                          request.collective == Collective::all_to_all;
  is_small_ = is_all_reduce && request.count * static_cast<std::int64_t>(element_) <= small_bytes;
  combines_ = is_all_reduce || request.collective == Collective::reduce_scatter;
  const bool is_sender = request.collective == Collective::send && !request.receives;
  takes_ = is_sender ? false : !combines_ || (is_all_reduce && !is_small_);
  const bool is_one_block = is_all_reduce || request.collective == Collective::send;
  const auto result = static_cast<std::int64_t>((is_one_block ? 1 : members_) *
                                                static_cast<std::size_t>(request.count) * element_);
  streams_ = result > host::caches().l3;
  const std::size_t room = slot_bytes / element_ / (has_blocks ? members_ : 1);
  per_piece_ = static_cast<std::int64_t>(room) / unit * unit;
  pieces_ = static_cast<std::uint64_t>(
      std::max<std::int64_t>(1, (request.count + per_piece_ - 1) / per_piece_));
  if (request.receives) staged_ = pieces_;  // by the sender
}

Steps::Piece Steps::piece(std::uint64_t k) const {
  const std::int64_t begin = static_cast<std::int64_t>(k) * per_piece_;
  return {base_ + k, begin, std::min(per_piece_, request_.count - begin)};
}

std::byte* Steps::slot(std::size_t member, const Piece& piece) const {
  return posts_.of[member]->slots[piece.number % slot_count].data();
}

std::int64_t Steps::share_begin(std::size_t member, const Piece& piece) const {
  const auto members = static_cast<std::int64_t>(members_);
  const std::int64_t share = ((piece.count + members - 1) / members + unit - 1) / unit * unit;
  return std::min(piece.count, static_cast<std::int64_t>(member) * share);
}

// --- order ---

bool Steps::all_have(Progress progress, std::uint64_t pieces) const {
  for (std::size_t i = 0; i < members_; ++i) {
    if (i != posts_.own && (posts_.of[i]->*progress).load(std::memory_order_acquire) < pieces)
      return false;
  }
  return true;
}

bool Steps::may_stage() const {
  if (staged_ == pieces_) return false;
  const std::uint64_t number = base_ + staged_;
  return number < slot_count || all_have(&Post::taken, number - slot_count + 1);
}
bool Steps::may_combine() const {
  return combines_ && combined_ < staged_ && all_have(&Post::staged, base_ + combined_ + 1);
}
bool Steps::may_take() const {
  if (!takes_ || taken_ >= (combines_ ? combined_ : staged_)) return false;
  return all_have(combines_ ? &Post::combined : &Post::staged, base_ + taken_ + 1);
}

bool Steps::advance() {
  // The oldest piece first: what it lies in is still in the cache.
  if (may_take()) {
    if (!combines_) check_signatures();
    take(piece(taken_));
    publish(&Post::taken, base_ + ++taken_);
  } else if (may_combine()) {
    check_signatures();
    combine(piece(combined_));
    ++combined_;
    if (takes_)
      publish(&Post::combined, base_ + combined_);
    else
      publish(&Post::taken, base_ + (taken_ = combined_));
  } else if (may_stage()) {
    const Piece next = piece(staged_);
    if (staged_ == 0)
      posts_.of[posts_.own]->signatures[next.number % slot_count] = {operation_of(request_),
                                                                     request_.count};
    stage(next);
    publish(&Post::staged, base_ + ++staged_);
    if (!combines_ && !takes_) taken_ = staged_;  // a sender is done
  } else {
    return false;
  }
  return true;
}

std::vector<std::size_t> Steps::waits_for() const {
  std::vector<std::size_t> late;
  for (std::size_t i = 0; i < members_; ++i) {
    const Post& post = *posts_.of[i];
    const bool is_late =
        (staged_ < pieces_ && post.taken + slot_count < base_ + staged_ + 1) ||
        (combines_ && combined_ < staged_ && post.staged < base_ + combined_ + 1) ||
        (takes_ && taken_ < (combines_ ? combined_ : staged_) &&
         post.*(combines_ ? &Post::combined : &Post::staged) < base_ + taken_ + 1);
    if (i != posts_.own && is_late) late.push_back(i);
  }
  return late;
}

void Steps::publish(Progress progress, std::uint64_t pieces) const {
  (posts_.of[posts_.own]->*progress).store(pieces, std::memory_order_release);
}

void Steps::check_signatures() const {
  if ((combines_ ? combined_ : taken_) > 0) return;
  const std::size_t place = base_ % slot_count;
  if (request_.receives) {
    const std::size_t sender = 1 - posts_.own;
    const Request sent = request_of(posts_.of[sender]->signatures[place]);
    if (sent.count == request_.count && sent.dtype == request_.dtype) return;
    throw Error(ErrorKind::value, different_message(posts_.ranks[sender], sent, request_));
  }
  const Signature& own = posts_.of[posts_.own]->signatures[place];
  for (std::size_t i = 0; i < members_; ++i) {
    const Signature& other = posts_.of[i]->signatures[place];
    if (other.operation == own.operation && other.count == own.count) continue;
    throw Error(
        ErrorKind::value,
        "the processes of a group started different collectives\n  process " +
            std::to_string(posts_.ranks[posts_.own]) + ": " + to_string(request_) + "\n  process " +
            std::to_string(posts_.ranks[i]) + ": " + to_string(request_of(other)) +
            "\n  help: all processes of a group start the same collectives in the same order");
  }
}

// --- what is done ---

void Steps::stage(const Piece& piece) const {
  std::byte* const to = slot(posts_.own, piece);
  switch (request_.collective) {
    case Collective::all_reduce:
      if (is_small_) return copy_bytes(to, request_.from, bytes(piece.count));
      for (std::size_t i = 0; i < members_; ++i) {  // its own share it reads from the operand
        const std::int64_t begin = share_begin(i, piece), end = share_begin(i + 1, piece);
        if (i != posts_.own)
          copy_bytes(to + bytes(begin), request_.from + bytes(piece.begin + begin),
                     bytes(end - begin));
      }
      return;
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      for (std::size_t i = 0; i < members_; ++i) {
        const std::int64_t begin = static_cast<std::int64_t>(i) * request_.count + piece.begin;
        if (i != posts_.own)
          copy_bytes(to + i * bytes(per_piece_), request_.from + bytes(begin), bytes(piece.count));
      }
      return;
    case Collective::all_gather:
    case Collective::send:
      return copy_bytes(to, request_.from + bytes(piece.begin), bytes(piece.count));
    case Collective::barrier:
      return;
  }
}

void Steps::combine(const Piece& piece) const {
  const std::size_t own = posts_.own;
  std::size_t operand = bytes(piece.begin);  // where it begins in the own one
  std::size_t offset = 0;                    // and in the slots of others
  std::byte* to = request_.to + bytes(piece.begin);
  std::int64_t count = piece.count;
  if (request_.collective == Collective::reduce_scatter) {
    operand += own * bytes(request_.count);
    offset = own * bytes(per_piece_);
  } else if (!is_small_) {
    const std::int64_t share = share_begin(own, piece);
    offset = bytes(share);
    operand += offset;
    to = slot(own, piece) + offset;
    count = share_begin(own + 1, piece) - share;
  }
  if (count == 0) return;
  std::array<const std::byte*, most_shm_processes> from;
  for (std::size_t i = 0; i < members_; ++i)
    from[i] = i == own ? request_.from + operand : slot(i, piece) + offset;
  combine_elements(std::span(from).first(members_), to, count, request_.dtype, request_.combine);
}

void Steps::take(const Piece& piece) const {
  const std::size_t own = posts_.own;
  if (request_.receives)
    return copy_result(bytes(piece.begin), slot(1 - own, piece), bytes(piece.count));
  for (std::size_t i = 0; i < members_; ++i) {
    const std::size_t block = i * bytes(request_.count) + bytes(piece.begin);
    const std::byte* const slot = this->slot(i, piece);
    if (request_.collective == Collective::all_reduce) {
      const std::int64_t begin = share_begin(i, piece), end = share_begin(i + 1, piece);
      copy_result(bytes(piece.begin + begin), slot + bytes(begin), bytes(end - begin));
    } else if (request_.collective == Collective::all_gather) {
      copy_result(block, i == own ? request_.from + bytes(piece.begin) : slot, bytes(piece.count));
    } else if (request_.collective == Collective::all_to_all) {
      copy_result(block, i == own ? request_.from + block : slot + own * bytes(per_piece_),
                  bytes(piece.count));
    }
  }
}

void Steps::copy_result(std::size_t offset, const std::byte* from, std::size_t bytes) const {
  if (!streams_ || bytes == 0) return copy_bytes(request_.to + offset, from, bytes);
  const auto& copies = host::level().copies;
  host::CopyBox box{};
  box.count_i = box.count_j = 1;
  box.run = static_cast<std::int64_t>(bytes);
  copies.rows(true)(request_.to + offset, from, box);
  copies.finish_streaming();
}

}  // namespace ein::mesh
