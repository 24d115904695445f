#pragma once
#include <string>

#include "core/derivation/model_request.h"
#include "core/torch/judging/reference.h"

namespace retrograd {

/// What to open and on what to run it: the one request of command line and window.
struct OpenRequest : ModelRequest {
  std::string path;    ///< a file of any kind, a job's log, or a folder that was recorded or captured
  std::string inputs;  ///< a safetensors file (in.NAME or NAME, cot.N); empty: the sample inputs, those that a folder
                       ///< recorded with its graph, else drawn ones
  std::string fill;    ///< a safetensors file with results of opaque ops; empty: `inputs` may hold them by name
  std::string loss;    ///< the output at which the gradient begins with 1 (core/cut/loss.h); empty: at all outputs
  bool drawn = false;  ///< draws inputs though the file has some
  bool onRecordedDevice = false;  ///< where no device is asked for: on that of the recorded step, if it is there

  /// Whether a saved session is as asked for.
  bool asksForNothing() const;
  /// What the inputs file holds. Throws Error(badInput) for an unreadable one.
  Reference given() const;
  /// What to read a file with that has to be traced.
  DerivationRequest forReading(const Reference& given) const;
  /// What to analyse `file` with. Throws Error(badInput) as requestFor(), and for an unreadable `fill`.
  DerivationRequest forFile(const ModelFile& file, const Reference& given) const;
};

}  // namespace retrograd
