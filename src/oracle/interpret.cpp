#include "oracle/interpret.hpp"

namespace ein {

template class Interpreter<double>;

}  // namespace ein
