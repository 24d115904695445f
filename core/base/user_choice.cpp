#include "core/base/user_choice.h"

#include <atomic>

namespace retrograd {
namespace {

std::string optionOf(UserChoice choice) {
  switch (choice) {
    case UserChoice::fill: return "--fill";
    case UserChoice::library: return "--library";
    case UserChoice::minCut: return "--partition min-cut";
    case UserChoice::runningMemory: return "--running-memory";
    case UserChoice::openingMemory: return "--opening-memory";
    case UserChoice::partialWeights: return "--partial-weights";
    case UserChoice::weightsUnder: return "--weights-under";
    case UserChoice::embeddedWeights: return "--embed";
    case UserChoice::inputs: return "--inputs";
    case UserChoice::synchronous: return "--synchronous";
    case UserChoice::scaledGradients: return "--scale-gradients";
    case UserChoice::stages: return "--stages";
    case UserChoice::compile: return "--compile";
    case UserChoice::rank: return "--rank";
  }
  return {};
}

std::atomic<UserChoiceNames> current = &optionOf;

}  // namespace

std::string nameOf(UserChoice choice) { return current.load()(choice); }

void nameChoicesBy(UserChoiceNames names) { current = names ? names : &optionOf; }

}  // namespace retrograd
