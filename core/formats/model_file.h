#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/archive.h"
#include "core/trace/tensor_data.h"
#include "core/trace/trace.h"

namespace retrograd {

/// What was read from a file, or traced from a program: the computation with its weights, nothing derived yet.
struct ModelFile {
  std::string path;
  std::string torchVersion;                 ///< that wrote the file, as the file says
  std::shared_ptr<Document> document;
  Computation computation;
  TensorMap weights;                        ///< parameters and buffers by fully qualified name; tied ones share `data`
  TensorMap constants;                      ///< lifted tensor constants by name
  TensorMap sampleInputs;                   ///< by argument name; empty where the archive holds none
  std::map<std::string, Argument> sampleNumbers;  ///< sample inputs that are numbers, by argument name
  std::vector<Problem> problems;            ///< what the file has lost (custom autograd.Function, ...), unknown ops

  /// True where the computation was made by running a program (TorchScript, a live module) on `sampleInputs`: its literals, its sizes
  /// and the branches it took hold for these inputs, so that nothing else may flow in.
  bool traced = false;
  std::map<std::string, std::string> inputSource;  ///< where traced: how each sample input came to be ("given", "drawn from seed 0")
  std::vector<std::string> dataDependent;          ///< where traced: what data decided ("aten.item.default, model.py:31")
};

/// Maps and verifies the file's archive. Throws Error(badInput) for what is none, saying what it is and how to make a right one.
std::shared_ptr<const Archive> openModelArchive(const std::string& path, const Progress& progress = {});

/// Reads a `torch.export` archive (.pt2). Verifies the whole of it first: CRCs, every record present and as long as its
/// shape says, sizes, argument kinds, nesting; nothing is allocated from numbers that were not checked.
/// Throws Error(badInput) naming the file and the trouble. An op that `lookup` does not know is a Problem of severity
/// error with its places; the rest of the computation is still returned.
/// For a file of another kind (state dict, TorchScript, ONNX, AOTInductor package, older archive layouts, text) the error
/// says what it is and how to make a right one.
ModelFile readModelFile(const std::string& path, const SymbolLookup& lookup, const Progress& progress = {});
/// The same from an archive that was opened already.
ModelFile readModelFile(const std::shared_ptr<const Archive>& archive, const SymbolLookup& lookup, const Progress& progress = {});

}  // namespace retrograd
