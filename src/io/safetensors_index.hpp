// Tensors in several .safetensors files, and the index that says which has what.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ein/safetensors.hpp>

#include "io/file.hpp"

namespace ein::io {

/// As the loaders of Hugging Face look for it in a directory.
inline constexpr std::string_view index_name = "model.safetensors.index.json";
inline constexpr std::string_view index_suffix = ".safetensors.index.json";
/// Of file `number`, from 0 on, of so many: "model-00001-of-00004.safetensors".
std::string shard_name(std::size_t number, std::size_t count);

/// The text of the index of these shards: `weight_map`, from each tensor's name to the file's, and
/// `metadata.total_size`, the bytes of all tensors.
std::string index_of(const std::vector<StateDict>& shards);

/// Of each tensor the file, which is in the directory of the index.
using WeightMap = std::map<std::string, std::string>;
/// Of the `weight_map` of an index; what else it has may be anything. `text` is the whole file, and
/// may be any bytes. An Error of kind `file` naming `caller` and `path` where it is damaged.
WeightMap parse_index(std::string_view text, const std::string& caller, const std::string& path);

/// What loads a file of an index, which calls it `name`.
using LoadFile = std::function<Safetensors(const InputFile& file, const std::string& name)>;
/// The tensors of all files of an index, and the metadata of the first. An Error of kind `file`
/// where one cannot be read, or has other tensors than the index says.
Safetensors load_indexed(const std::string& caller, const std::string& path, const LoadFile& load);

}  // namespace ein::io
