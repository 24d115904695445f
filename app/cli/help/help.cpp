#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "app/cli/help/command_text.h"
#include "app/cli/help/mistakes.h"
#include "app/cli/parsing/command.h"
#include "core/base/near_names.h"

namespace retrograd::cli {
namespace {

constexpr const char* savingTopic = R"(How to save a model for Retrograd

In Python, with PyTorch 2.9 or later:

    import torch
    model.train()                                   # or eval(): the trace is of this mode
    program = torch.export.export(model, (x,))      # x: a sample input, as model(x) would take it
    torch.export.save(program, "model.pt2")

Keyword arguments go in kwargs={...}; sizes that may vary in dynamic_shapes={"x": {0: torch.export.Dim("batch")}}.
The parameters keep their requires_grad: freeze with p.requires_grad_(False) before the export.
To look at core ATen ops instead of the ops as written:

    program = program.run_decompositions()

A reference to check against is a safetensors file with in.NAME, cot.N, out.N, grad.in.NAME and grad.p.PARAMETER, and the seed
that was set before the run in its metadata (`seed`):

    retrograd check model.pt2 --reference ref.safetensors

TorchScript files (torch.jit.save) open as well: they are run once, on inputs that the file does not hold, to be traced. A traced
module keeps the shapes it was traced with; for a scripted one say the shapes, or give the inputs in a safetensors file:

    retrograd trace model.pt --shape x=2x3 --shape ids=2x8:int64 --value scale=0.5
    retrograd trace model.pt --inputs inputs.safetensors

Inputs in lists, tuples and dicts have names such as xs.0 and batch.ids. The window looks for model.inputs.safetensors next to model.pt.
Ops that reach files, processes or the network are refused, and so are classes of C++ (quantized modules) and __setstate__.

Logs of torch.compile hold graphs too: `retrograd graphs LOG` lists them. A state dict (.pt, .pth) holds weights and no graph; --weights
gives them to a model. An ONNX file and an AOTInductor package have no graph that PyTorch's autograd knows: export the model as above.
Archives of PyTorch 2.1 to 2.7 have an older layout: load and save
them again with a newer one:

    torch.export.save(torch.export.load("old.pt2"), "new.pt2")
)";

const CLI::App* find(const CLI::App& program, const std::string& name) {
  for (const auto* command : program.get_subcommands({}))
    if (command->get_name() == name) return command;
  return nullptr;
}

int print(const CLI::App& program, const std::vector<std::string>& topics) {
  const auto topic = topics.empty() ? std::string() : topics[0];
  if (topic == "saving") {
    std::fputs(savingTopic, stdout);
  } else if (topic == "completion") {
    std::fputs(shellCompletion(program, topics.size() > 1 ? topics[1] : "").c_str(), stdout);
  } else if (topic == "man") {
    std::fputs(manualPage(program).c_str(), stdout);
  } else if (topic.empty()) {
    // App::help() would hand over to the subcommand that was called: this one.
    const auto text = program.get_formatter()->make_help(&program, program.get_name(), CLI::AppFormatMode::Normal);
    std::fputs(text.c_str(), stdout);
    std::fputs(
        "\nTopics of `retrograd help`: saving (how to save a model), each subcommand, completion bash|zsh|fish, man.\n",
        stdout);
  } else if (const auto* command = find(program, topic)) {
    auto before = program.get_name();
    if (topics.size() > 1 && !command->get_subcommands({}).empty()) {
      const auto* nested = find(*command, topics[1]);
      if (!nested)
        badUse("there is no such subcommand" + meantSubcommand(*command, topics[1]), topic + " " + topics[1]);
      before += " " + topic;
      command = nested;
    }
    std::fputs(command->help(before).c_str(), stdout);
  } else {
    auto known = subcommandNames(program);
    known.insert(known.begin(), {"saving", "completion", "man"});
    badUse("there is no such topic; topics are saving, completion, man and the subcommands" + didYouMean(topic, known),
           topic);
  }
  return allWell;
}

Run setUpHelp(Parser parser) {
  auto topic = std::make_shared<std::vector<std::string>>();
  parser.add("topic", *topic, "saving, a subcommand (`pipeline split` has two words), completion SHELL, or man");
  return [topic, parser](const Progress&) { return print(parser.parent().app(), *topic); };
}

const Registration registrationHelp("help", "explain a subcommand, or how to save a model (help saving)", setUpHelp);

}  // namespace
}  // namespace retrograd::cli
