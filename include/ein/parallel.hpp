// The threads that operations run on.
#pragma once

namespace ein {

/// Number of threads that one operation may use, the calling one included. At first: the processors
/// that this process may run on.
int num_threads();

/// Sets it; an Error of kind `value` unless 1 <= threads <= 1024. Operations that are running keep
/// theirs.
void set_num_threads(int threads);

}  // namespace ein
