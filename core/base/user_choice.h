#pragma once
#include <cstdint>
#include <string>

namespace retrograd {

/// What a user can choose and a message names as the way on. A front end has its own name for each.
enum class UserChoice : std::uint8_t {
  fill,             ///< results of opaque ops
  library,          ///< a shared library with ops and rules
  minCut,           ///< fewer bytes saved for the backward
  runningMemory,    ///< what a run may take
  openingMemory,    ///< what opening may allocate
  partialWeights,   ///< go on with what fits of weights and a batch
  weightsUnder,     ///< which dictionary of a checkpoint holds the weights
  embeddedWeights,  ///< a session with its weights inside
  inputs,           ///< inputs from a file
  synchronous,      ///< wait for each op on a GPU
  scaledGradients,  ///< divide gradients by the number of microbatches
  stages,           ///< the number of pipeline stages
  compile,          ///< which compile of a job's log
  rank,             ///< which rank of a job's logs
};
inline constexpr int userChoiceCount = 14;

/// What the user knows the choice as: "--fill" in a terminal, a menu's item or a field in a window.
std::string nameOf(UserChoice choice);

using UserChoiceNames = std::string (*)(UserChoice);
/// For the whole program, before it opens anything; without it, choices have the names of the command line's options.
void nameChoicesBy(UserChoiceNames names);

}  // namespace retrograd
