#include "graph/fields.hpp"

#include "size/ask.hpp"

namespace ein {

void AppendTo::operator()(std::int64_t word) const { words_->push_back(word); }

}  // namespace ein
