#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/formats/model/format.h"
#include "core/formats/zip/file_identity.h"
#include "core/trace/tensor_data.h"
#include "core/trace/trace.h"

namespace retrograd {

struct StepRecording;
struct TextTraces;

/// What was read from a file, or traced from a program: the computation with its weights, nothing derived yet.
struct ModelFile {
  std::string path;
  Format format = Format::model;
  FileIdentity identity;     ///< of that file when it was read
  double seconds = 0;        ///< it took to read
  std::string torchVersion;  ///< that wrote the file, as the file says
  std::shared_ptr<Document> document;
  Computation computation;
  TensorMap weights;       ///< parameters and buffers by fully qualified name; tied ones share `data`
  TensorMap constants;     ///< lifted tensor constants by name
  TensorMap sampleInputs;  ///< by argument name; empty where the archive holds none
  std::map<std::string, Argument> sampleNumbers;  ///< sample inputs that are numbers, by argument name
  std::vector<std::string>
      guards;  ///< conditions on sizes under which the graph was exported, as Python: "L['x'].size()[0] % 4 == 0"
  std::vector<Problem> problems;  ///< what the file has lost (custom autograd.Function, ...), unknown ops
  std::shared_ptr<const TextTraces>
      printed;          ///< a text file's derived traces, in a document of their own; null where there are none
  bool isText = false;  ///< weights are described only: they have no data
  bool embedded =
      false;  ///< weights, constants and sample inputs lie in the session that this was read from; `path` may be gone

  std::shared_ptr<const StepRecording> recording;  ///< of a recorded step (formats/recording); null for any other file

  bool isPart = false;  ///< of a model: what weights and batch hold beyond it is not an error

  /// True where the computation was made by running a program (TorchScript, a live module) on `sampleInputs`: its
  /// literals, its sizes and the branches it took hold for these inputs, so that nothing else may flow in.
  bool traced = false;
  std::map<std::string, std::string>
      inputSource;  ///< where traced: how each sample input was made ("given", "drawn from seed 0")
  std::vector<std::string> dataDependent;  ///< where traced: what data decided ("aten.item.default, model.py:31")
};

}  // namespace retrograd
