#pragma once
#include <string>

#include "core/formats/jobs/job_log.h"
#include "core/torch/opinion/second_opinion.h"

namespace retrograd {

/// The compile that was asked for, else the first with a forward and a backward graph. Throws Error(badUse) where there
/// is no such compile.
jobs::GraphChoice opinionChoice(const jobs::JobLog& log, const SecondOpinionRequest& request);

/// Why a compile cannot be compared at all: it lacks a graph. Empty where it can.
std::string whyNotCompared(const jobs::Attempt& attempt);

/// The compiles that nobody asked for by name and that are therefore not looked at; empty where there are none.
std::string leftOutCompiles(const jobs::JobLog& log, const jobs::GraphChoice& choice);

}  // namespace retrograd
