#pragma once
// The backward of a compile, judged against the one that is derived here.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/jobs/job_log.h"
#include "core/judge/report.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// What a second opinion on a compile is asked with.
struct SecondOpinionRequest {
  std::string compile;  ///< "0/0"; empty: the first with a forward and a backward graph
  std::optional<std::int64_t> rank;
  TensorMap weights;                   ///< parameters and buffers by name; empty: drawn
  TensorMap batch;                     ///< inputs of the compiled function by name; empty: drawn
  std::optional<TensorMap> reference;  ///< "loss" and "grad.PARAMETER", as eager PyTorch gave them
  TensorMap filled;                    ///< results of ops that cannot run here, by the names of their nodes
  std::uint64_t seed = 0;
  double cotangent = 1;       ///< what flows into the backward where that is the cotangent of one number, a loss
  bool useWhatBinds = false;  ///< draw what the weights and the batch lack, instead of refusing
};

/// Where in the job's backward a claim of a second opinion comes from.
struct BackwardPlace {
  std::string gradientOf;  ///< the graph's input whose gradient it is: "primals_2"; empty for what is of no single one
  std::string input;       ///< the same as the Python program names it: "b.weight"; empty where that is not known
  std::string target;      ///< "torch.ops.aten.mm.default"; empty where no op is named
  std::string file;        ///< of the line of Python: "/job/train.py"
  int sourceLine = 0;
  int line = 0;  ///< of the op in the graph's text
};

/// Derived by Retrograd from the job's forward, and compared with the job's own backward on the same values.
struct SecondOpinion {
  /// Claims on each gradient by who says what is right (derivative, jointGraph), on the job's own loss and gradients by
  /// the reference, on health. What the derived backward is off from the reference is a note.
  Report report;
  std::vector<BackwardPlace> places;  ///< of the first claims of the report
  std::string compile;                ///< "0/0"
  /// Which of job, derived backward and reference parts from the other two.
  enum class Parting : std::uint8_t { none, job, derived, reference, all };
  Parting parting = Parting::none;
  bool agrees = false;    ///< all that was compared, whatever its health
  TensorMap imported;     ///< the gradients that the job's backward gave, by input of the forward ("primals_1")
  std::size_t looks = 0;  ///< how many times more it is worth to look, with other draws or another cotangent
  std::size_t drawn = 0;  ///< inputs of the forward that neither weights nor batch gave: drawn from the seed
};

/// The forward that autograd differentiated (differentiatedForward()) is derived by our own rules; its gradients are
/// compared with what the backward graph gives on what the forward saved and the same cotangents: dtype, None, shape
/// and numbers, each tensor by its own noise (Judge). Values are those of the request, else drawn. Passes only where
/// every gradient was compared and each draw of the backward is one of the forward. Where the graphs leave open what
/// autograd recorded, the joint graph of the same compile, run as it is, decides whether it was understood; where it
/// was not, it is not judged, nor are NaN and infinities of values that were drawn. Gradients through a backward of the
/// author's own are compared with the joint graph's. Before it agrees it looks again where one set of numbers can hide
/// a difference: with other draws where the forward draws, and with another cotangent where the gradients do not scale
/// with that of a loss. Throws Error(badUse) for a compile that is not there and for weights that do not fit,
/// Error(badInput) for a log that cannot be read.
SecondOpinion secondOpinion(const jobs::JobLog& log, const SecondOpinionRequest& request,
                            const Progress& progress = {});

}  // namespace retrograd
