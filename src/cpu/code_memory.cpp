#if EIN_ASMJIT

#include "cpu/code_memory.hpp"

#include <algorithm>

#include "cpu/assembler_errors.hpp"
#include "size/ask.hpp"

namespace ein::host {
namespace {

constexpr std::size_t usual_bytes = std::size_t{64} << 10;
constexpr std::size_t alignment = 64;  // as asmjit's constants take it for given

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

void or_throw(asmjit::Error error) {
  if (error != asmjit::kErrorOk) throw AssemblerError{error};
}

}  // namespace

/// Two mappings of the same memory. It is filled from the beginning on, and its parts are not given
/// back one by one: what translates code, as QEMU and valgrind do, sees new mappings, and may not
/// see that a page changes which it knows under another address. All of it goes with its last code.
class CodeMemory::Block {
 public:
  explicit Block(std::size_t bytes)
      : bytes_(round_up(bytes, std::max<std::size_t>(asmjit::VirtMem::info().pageSize, 1))) {
    or_throw(asmjit::VirtMem::allocDualMapping(&memory_, bytes_,
                                               asmjit::VirtMem::MemoryFlags::kAccessRWX));
  }
  ~Block() {
    close();
    asmjit::VirtMem::release(memory_.rx, bytes_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  bool has_room(std::size_t bytes) const { return bytes <= bytes_ - used_; }
  void* add(asmjit::CodeHolder& holder) {
    auto* const runs_at = static_cast<std::byte*>(memory_.rx) + used_;
    or_throw(holder.relocateToBase(reinterpret_cast<std::uint64_t>(runs_at)));
    const std::size_t bytes = holder.codeSize();
    or_throw(holder.copyFlattenedData(static_cast<std::byte*>(memory_.rw) + used_, bytes,
                                      asmjit::CopySectionFlags::kPadSectionBuffer));
    asmjit::VirtMem::flushInstructionCache(runs_at, bytes);
    used_ = std::min(bytes_, round_up(used_ + bytes, alignment));
    return runs_at;
  }
  /// Unmaps where it is written.
  void close() {
    if (memory_.rw) asmjit::VirtMem::release(memory_.rw, bytes_);
    memory_.rw = nullptr;
  }

 private:
  asmjit::VirtMem::DualMapping memory_{};
  std::size_t bytes_, used_ = 0;
};

CodeMemory::Code CodeMemory::add(asmjit::CodeHolder& holder) {
  or_throw(holder.flatten());
  or_throw(holder.resolveUnresolvedLinks());
  const std::size_t bytes = holder.codeSize();  // or less, once it is known where it runs
  if (!block_ || !block_->has_room(bytes)) {
    auto next = std::make_shared<Block>(std::max(bytes, usual_bytes));
    close();
    block_ = std::move(next);
  }
  return Code(block_, block_->add(holder));
}

void CodeMemory::close() {
  if (block_) block_->close();
  block_.reset();
}

}  // namespace ein::host

#endif
