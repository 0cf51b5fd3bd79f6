// Memory for machine code. It is written through one mapping and run through another: no page can
// be both written and run.
#pragma once

#include <cstddef>
#include <memory>

#include <asmjit/core.h>

namespace ein::host {

class CodeMemory {
 public:
  /// Where code begins; it stays as long as this lives.
  using Code = std::shared_ptr<const void>;

  /// Puts the code of `holder` where it can run. An AssemblerError where the system gives no memory
  /// that can be run, or none at all.
  Code add(asmjit::CodeHolder& holder);
  /// From now on what there is can only be run. Before fork(): parent and child share it.
  void close();

 private:
  class Block;
  std::shared_ptr<Block> block_;  // the one that is written to, or null
};

}  // namespace ein::host
