// Row code: nests over the same rows, compiled at run time to vector instructions of this
// processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "machine/processor.hpp"
#include "schedule/cpu_choose.hpp"
#include "schedule/schedule.hpp"
#include "schedule/target.hpp"
#include "tensor/kept.hpp"

namespace ein::host {

class RowCode {
 public:
  struct Call {
    std::byte** places;         // addresses of the first row; changed by the call
    std::int64_t length, rows;  // both at least 1
    const std::int64_t* index;  // the first value of each axis index
    /// Of each place, bytes from row to row; none are read where all are 0.
    const std::int64_t* row_steps = nullptr;
    const double* sizes = nullptr;  // sizes_of(part)
  };
  RowCode(const RowCode&) = delete;
  RowCode& operator=(const RowCode&) = delete;

  void operator()(const Call& call) const {
    reinterpret_cast<void (*)(const Call*)>(reinterpret_cast<std::uintptr_t>(code_.get()))(&call);
  }

  // Of the instructions that are used here, or of others of this architecture.

  /// Why there is no code here at all: the processor, or how ein was built; empty where there is.
  static std::string_view missing(Isa isa = host::isa());
  /// What the code has; nothing where all code is missing(). It computes in f32 or f64, and reads
  /// and writes bf16 and f16 as well; of i32, u8, bool and single i64 it reads, in f64 also of
  /// i64 side by side.
  static const Target& target(Isa isa = host::isa());
  /// Of this machine, for schedules that run in strips.
  static const Target& target_without_code();
  /// The formulas that a part's expressions ask the value of, in the order in which a call has
  /// them.
  static std::vector<Size> sizes_of(const Schedule::Part& part);
  /// Whether the part combines rows that are so short that their results stay in registers.
  static bool combines_rows(const Schedule::Part& part, Isa isa = host::isa());
  /// Of the part's rows, for all lengths; shared by parts that differ in how long a row is and how
  /// far it is to the next, unless several rows are worked on together. Null where all code is
  /// missing(), where the part uses an operation or dtype that target(isa) lacks, where it combines
  /// rows but not as combines_rows() says, and where the system gives no memory for code.
  static std::shared_ptr<const RowCode> compile(const Schedule::Part& part, Isa isa = host::isa());

 private:
  RowCode() = default;
  std::shared_ptr<const void> code_;  // a function of a Call
  KeptBytes kept_;                    // of the code
};

}  // namespace ein::host
