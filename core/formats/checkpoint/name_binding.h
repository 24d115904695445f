#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/checkpoint/checkpoint.h"

namespace retrograd {

/// A name that one side has alone, or both with another shape or dtype.
struct Mismatch {
  std::string name;
  std::optional<TensorMeta> wanted, found;
};

/// Which tensors of a checkpoint take the place of which names.
struct NameBinding {
  std::string under;  ///< the dictionary, or beginning of names, that was chosen: "model"; empty: all of the file
  std::map<std::string, const CheckpointTensor*> bound;  ///< by wanted name
  std::vector<Mismatch> missing;                         ///< wanted, and not there
  std::vector<Mismatch>
      superfluous;  ///< there, among the wanted ones, and not wanted. What lies in other dictionaries does not count
  std::vector<Mismatch> different;  ///< of another shape or dtype
};

/// `name` without the parts that PyTorch's wrappers put in: _orig_mod (torch.compile), module (DDP),
/// _fsdp_wrapped_module, _checkpoint_wrapped_module.
std::string withoutWrappers(std::string_view name);

/// Compares a tensor with what is wanted; true where it fits.
using Fits = bool (*)(const TensorMeta& wanted, const TensorMeta& found);
bool sameShapeAndDType(const TensorMeta& wanted, const TensorMeta& found);

/// Finds the dictionary of the checkpoint that holds the most of the wanted names, with wrappers taken out on both
/// sides and, where that fits better, without the parts that all wanted names begin with; pairs the names. `under`
/// chooses the dictionary instead. The checkpoint must outlive the result. Cost: linear in the length of all names.
/// Throws Error(badUse) where several dictionaries hold them equally well, or none is called `under`.
NameBinding bindNames(const Checkpoint& checkpoint, const std::map<std::string, TensorMeta>& wanted,
                      const std::string& under = {}, Fits fits = sameShapeAndDType);

/// "f32[2, 3]"
std::string shapeText(const TensorMeta& meta);

/// What did not fit, a line for each name; empty where all did. `superfluous`: whether these count.
std::string describeMismatches(const NameBinding& binding, bool superfluous = true);

}  // namespace retrograd
