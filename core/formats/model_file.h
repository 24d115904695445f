#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/archive.h"
#include "core/formats/file_identity.h"
#include "core/trace/tensor_data.h"
#include "core/trace/trace.h"

namespace retrograd {

struct TextTraces;

/// What was read from a file, or traced from a program: the computation with its weights, nothing derived yet.
struct ModelFile {
  std::string path;
  FileIdentity identity;                    ///< of that file when it was read
  double seconds = 0;                       ///< it took to read
  std::string torchVersion;                 ///< that wrote the file, as the file says
  std::shared_ptr<Document> document;
  Computation computation;
  TensorMap weights;                        ///< parameters and buffers by fully qualified name; tied ones share `data`
  TensorMap constants;                      ///< lifted tensor constants by name
  TensorMap sampleInputs;                   ///< by argument name; empty where the archive holds none
  std::map<std::string, Argument> sampleNumbers;  ///< sample inputs that are numbers, by argument name
  std::vector<std::string> guards;          ///< conditions on sizes under which the graph was exported, as Python: "L['x'].size()[0] % 4 == 0"
  std::vector<Problem> problems;            ///< what the file has lost (custom autograd.Function, ...), unknown ops
  std::shared_ptr<const TextTraces> printed;  ///< a text file's derived traces, in a document of their own; null where there are none
  bool isText = false;                      ///< weights are described only: they have no data

  /// True where the computation was made by running a program (TorchScript, a live module) on `sampleInputs`: its literals, its sizes
  /// and the branches it took hold for these inputs, so that nothing else may flow in.
  bool traced = false;
  std::map<std::string, std::string> inputSource;  ///< where traced: how each sample input came to be ("given", "drawn from seed 0")
  std::vector<std::string> dataDependent;          ///< where traced: what data decided ("aten.item.default, model.py:31")
};

/// Maps and verifies a file's archive. Throws Error(badInput) for what is none, saying what it is and how to make a right one.
std::shared_ptr<const Archive> openModelArchive(const std::string& path, const Progress& progress = {});

/// Reads what is in an archive of another kind than torch.export's; nullopt where it is not for it.
using ArchiveReader = std::function<std::optional<ModelFile>(const std::shared_ptr<const Archive>&)>;

/// Reads a `torch.export` archive (.pt2) or printed traces (formats/text_trace.h). Of an archive, verifies the whole of it first: CRCs,
/// every record present and as long as its
/// shape says, sizes, argument kinds, nesting; nothing is allocated from numbers that were not checked.
/// Throws Error(badInput) naming the file and the trouble. An op that `lookup` does not know is a Problem of severity
/// error with its places; the rest of the computation is still returned.
/// For a file of another kind (state dict, TorchScript, ONNX, AOTInductor package, older archive layouts, text) the error says what it is and
/// how to make a right one, unless `otherwise` reads it.
ModelFile readModelFile(const std::string& path, const SymbolLookup& lookup, const Progress& progress = {}, const ArchiveReader& otherwise = {});

}  // namespace retrograd
