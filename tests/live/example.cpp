// The program of docs/extending.md, "Tracing a module of your own"; a test compares the two.
#include "tests/live/example.h"

#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cstdio>

// begin of the example
#include "core/torch/analysis/analyse.h"
#include "core/torch/tracing/live_module.h"
#include "core/trace/print/printer.h"

struct Net : torch::nn::Module {
  torch::nn::Linear hidden{8, 16}, out{16, 2};

  Net() {
    register_module("hidden", hidden);
    register_module("out", out);
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto h = [&] {
      const retrograd::ModuleScope scope("hidden");  // so that the activation is there too
      return torch::gelu(hidden(x));
    }();
    return out(h);
  }
};

int traceNet() {
  Net net;
  auto file = retrograd::traceModule(net, {torch::randn({4, 8})},
                                     [&](const std::vector<at::Tensor>& inputs) { return net.forward(inputs[0]); },
                                     {.inputNames = {"x"}});
  const auto analysis = retrograd::analyse(std::move(file));
  std::puts(retrograd::printTrace(*analysis->document, analysis->backward).c_str());
  return analysis->derived() ? 0 : 1;
}
// end of the example
