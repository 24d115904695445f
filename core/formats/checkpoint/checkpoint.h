#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// A tensor of a checkpoint.
struct CheckpointTensor {
  std::string name;                     ///< with the keys of the dictionaries around it: "model.layers.0.weight"
  std::vector<std::size_t> borders{0};  ///< where in `name` a dictionary's own keys begin, ascending; the first is 0
  TensorMeta meta;
  std::function<TensorData()> load;  ///< mapped where the file allows it, else put together. Throws Error(badInput)
};

/// The tensors that a training job saved, with nothing of the model around them.
struct Checkpoint {
  std::string path;
  std::string form;  ///< for people: "safetensors", "safetensors, 2 shards", "torch.save", "distributed checkpoint"
  std::vector<CheckpointTensor> tensors;  ///< by name
  std::vector<std::string> others;        ///< "scheduler: torch.optim.X": what is neither tensor nor plain value
};

/// Reads a .safetensors file, what torch.save wrote, an index of shards of either (*.index.json), a folder with one of
/// these, or the folder of a distributed checkpoint (with .metadata). Nothing in it is run: classes that are not needed
/// stay names. Tensors of a distributed checkpoint are read when `load` asks for them. Throws Error(badInput) naming
/// file and record; for forms that are not read (compiled or transformed slices, pickles of before PyTorch 1.6) the
/// message names the form.
Checkpoint readCheckpoint(const std::string& path, const Progress& progress = {});

/// Whether a path is a checkpoint by what is there, and no model: a safetensors file, a state dict of torch.save, an
/// index of shards, or a folder with one of these. Cheap; a file that cannot be read is none.
bool isCheckpoint(const std::string& path);

/// A tensor without data whose name is made of the keys of nested dictionaries.
CheckpointTensor namedTensor(const std::vector<std::string>& keys);

}  // namespace retrograd
