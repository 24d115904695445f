#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/files/mapped_file.h"
#include "core/trace/argument.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// What torch.save wrote, flat: the leaves of its nested dictionaries, lists and tuples.
struct SavedObject {
  struct Leaf {
    std::vector<std::string> keys;  ///< of dictionaries, and positions in lists and tuples, from the outside in
    std::optional<TensorData> tensor;
    std::optional<Argument> number;  ///< a whole number, truth or real
  };
  std::vector<Leaf> leaves;         ///< tensors and numbers, in the file's order; shared ones once for each place
  std::vector<std::string> others;  ///< "args: argparse Namespace": objects, by keys and class
};

/// Reads an archive of torch.save. Nothing in it is run. Throws Error(badInput) naming file and record; for what the
/// format allows and this program does not read (big-endian data, nesting beyond 100) the message says so.
SavedObject readSavedObject(const std::string& path, const Progress& progress = {});
/// The same for bytes in memory, such as a slice of a distributed checkpoint.
SavedObject readSavedObject(ByteRegion bytes, const std::string& place, const Progress& progress = {});

}  // namespace retrograd
