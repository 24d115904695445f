#pragma once
// Only .cpp files of tracing include this: it shows LibTorch's types.
#include <torch/csrc/jit/frontend/source_range.h>

#include <memory>
#include <string>
#include <unordered_map>

#include "core/formats/torchscript/torchscript_archive.h"

namespace retrograd {

/// The code of a TorchScript archive: hands it to LibTorch's compiler, module by module, and knows which lines of
/// Python it came from.
class ScriptCode {
 public:
  explicit ScriptCode(const TorchScriptArchive& parts) : parts_(parts) {}

  /// The text that defines "__torch__.torch.nn", null where there is none. LibTorch evaluates the defaults of arguments
  /// and the constants of classes while it compiles: where one of these is more than a literal, or the code speaks of a
  /// class of C++, it is refused with Error(badInput) and never compiled.
  std::shared_ptr<torch::jit::Source> source(const std::string& module);

  /// The lines of Python behind a range of the code; where they are not known, the line of the archive's own code.
  SourceStack origin(const torch::jit::SourceRange& range) const;
  /// "model.py:31", for people.
  std::string place(const torch::jit::SourceRange& range) const;

 private:
  struct Record {
    std::string name;
    std::shared_ptr<torch::jit::Source> source;
    CodeOrigins origins;
  };
  const TorchScriptArchive& parts_;
  std::unordered_map<std::string, Record> records_;  // by module
  std::unordered_map<const torch::jit::Source*, const Record*> bySource_;
};

}  // namespace retrograd
