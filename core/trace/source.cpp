#include "core/trace/source.h"

namespace retrograd {
namespace {

bool isPyTorch(std::string_view file) {
  return file.find("-packages/torch/") != std::string_view::npos ||
         file.find("/torch/nn/modules/") != std::string_view::npos;
}

}  // namespace

const SourceFrame* shownFrame(const SourceStack& stack) {
  for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame)
    if (!isPyTorch(frame->file)) return &*frame;
  return stack.empty() ? nullptr : &stack.back();
}

}  // namespace retrograd
