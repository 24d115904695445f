#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/pickle/pickle.h"
#include "core/formats/zip/archive.h"
#include "core/trace/document.h"

namespace retrograd {

/// Whether the archive is one of torch.jit.save.
bool isTorchScript(const Archive& archive);

/// A TorchScript archive taken apart. Nothing of it has been run or compiled: objects are data, code is text.
/// Layout: torch/csrc/jit/docs/serialization.md.
struct TorchScriptArchive {
  std::shared_ptr<const Archive> archive;
  std::uint64_t version = 0;  ///< of the file format
  Pickle module;              ///< data.pkl: the module as an object of objects
  Pickle constants;           ///< a tuple; code refers to its elements as CONSTANTS.c0, CONSTANTS.c1, ...
  std::optional<Pickle>
      tracedInputs;  ///< of traced modules: a dict from method to a list of its inputs, tensors without data

  /// The record that defines "__torch__.torch.nn.Linear"'s module "__torch__.torch.nn"; empty where there is none.
  std::string codeRecord(std::string_view module) const;
};

/// Throws Error(badInput) naming the record.
TorchScriptArchive readTorchScript(std::shared_ptr<const Archive> archive);

/// Which lines of Python a record of code came from, as its ".debug_pkl" says.
class CodeOrigins {
 public:
  /// Empty where the archive has no such record or it cannot be read: only what is shown to people comes from it.
  CodeOrigins(const std::shared_ptr<const Archive>& archive, const std::string& codeRecord);

  /// The frames behind the code at `offset`: one for a scripted function; the whole stack at the time of tracing, from
  /// the traced module's call inwards, for a traced one. Empty where nothing is known.
  SourceStack at(std::size_t offset) const;

 private:
  struct Range {
    std::size_t offset;
    SourceStack frames;
  };
  std::vector<Range> ranges_;  // by offset
};

}  // namespace retrograd
