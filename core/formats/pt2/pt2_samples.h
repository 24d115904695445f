#pragma once
#include <memory>
#include <string>

#include "core/formats/model/model_file.h"
#include "core/formats/zip/archive.h"

namespace retrograd::pt2 {

/// Reads data/sample_inputs/<model>.pt, the pickled (args, kwargs), and matches its leaves to the user inputs in order.
/// Samples that cannot be read or do not fit are a note among the file's problems, never an error.
void readSamples(const std::shared_ptr<const Archive>& archive, const std::string& model, ModelFile& file);

}  // namespace retrograd::pt2
