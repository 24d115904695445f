#pragma once
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/jobs/job_graphs.h"
#include "core/torch/opinion/second_opinion.h"

namespace retrograd {

/// What flows into the forward graph of a compile.
struct JobInputs {
  TensorMap given;                 ///< by input of the graph ("primals_1"); the others are drawn
  std::size_t drawn = 0;           ///< tensors that are drawn
  bool drawsBetween = false;       ///< of them, one that the program computes between its compiled functions
  std::vector<std::string> notes;  ///< what was drawn or computed though the job's data were given
};

/// Takes the inputs from the request's weights and batch, whatever object of the program held them; from an earlier
/// compile of the same job what that gave: it is run. What the program computed between its compiled functions, in
/// eager mode ("___stack1"), is in no file and is drawn. Throws Error(badUse) naming what is missing and the way out,
/// unless the request draws it.
JobInputs jobInputs(const jobs::JobLog& log, const jobs::GraphChoice& choice, const JobGraphs& graphs,
                    const SecondOpinionRequest& request, const Progress& progress);

/// The name of an input in the Python program, where it has one: "blocks.0.weight".
std::string programNameOf(const JobGraphs& graphs, std::size_t input);

}  // namespace retrograd
