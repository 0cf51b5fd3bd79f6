// Signals that ask a command to come to an end by itself.
#pragma once

namespace ein::command {

/// From here on the first SIGINT or SIGTERM is remembered; the next one ends the process, as it
/// would have without this. A signal that is ignored, as by nohup, stays so.
void wait_for_stop_signal();
/// The signal that came; 0 where none did.
int stop_signal();

}  // namespace ein::command
