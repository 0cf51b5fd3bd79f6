#include "mesh/process.hpp"

namespace ein::mesh {

Process::Process(Transport& transport, std::span<const MeshAxis> axes)
    : transport_(transport), axes_(axes.begin(), axes.end()), coordinates_(axes.size()) {
  int rest = transport.rank();
  for (std::size_t a = axes.size(); a-- > 0;) {
    coordinates_[a] = rest % axes_[a].size;
    rest /= axes_[a].size;
  }
}

std::map<std::uint32_t, Group*> Process::known_groups() const {
  const std::lock_guard lock(known_->mutex);
  return known_->groups;
}

Group& Process::group(std::uint32_t mesh_axes) const {
  const std::lock_guard lock(known_->mutex);
  Group*& known = known_->groups[mesh_axes];
  if (known) return *known;
  std::vector<int> ranks;
  for (int rank = 0; rank < transport_.size(); ++rank) {
    bool is_of_group = true;
    int rest = rank;
    for (std::size_t a = axes_.size(); a-- > 0;) {
      const bool may_differ = mesh_axes >> a & 1u;
      is_of_group &= may_differ || rest % axes_[a].size == coordinates_[a];
      rest /= axes_[a].size;
    }
    if (is_of_group) ranks.push_back(rank);
  }
  known = &transport_.group(ranks);
  return *known;
}

}  // namespace ein::mesh
