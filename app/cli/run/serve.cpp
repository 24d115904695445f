#include <unistd.h>

#include <memory>

#include "app/cli/help/version.h"
#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "core/formats/files/reading_limit.h"
#include "core/torch/serve/questions.h"

namespace retrograd::cli {
namespace {

struct ServeArguments {
  std::vector<std::string> roots;
  ServeOptions serve;
  InputOptions input;
};

int runServe(const ServeArguments& arguments, const Progress& progress) {
  MessageWriter out;  // before anything can print
  MessageReader in(STDIN_FILENO, progress);
  auto options = arguments.serve;
  options.version = versionText();
  auto roots = arguments.roots;
  if (roots.empty() && options.agents) roots.emplace_back(".");
  if (!roots.empty()) limitReadingTo(roots);
  serve(in, out, questionMethods(arguments.input), options, progress);
  return allWell;
}

Run setUpServe(Parser parser) {
  auto arguments = std::make_shared<ServeArguments>();
  parser.flag("--mcp", arguments->serve.agents, "speak the Model Context Protocol, for agents");
  parser
      .add("--root", arguments->roots,
           "read only files below this folder; repeatable (default with --mcp: the current folder)")
      .repeatable();
  arguments->input.addTo(parser);
  parser.footer("docs/serve.md lists the questions, docs/serve.schema.json describes the messages.\n");
  return [arguments](const Progress& progress) { return runServe(*arguments, progress); };
}

const Registration registrationServe(
    "serve", "answer questions about models and recordings as JSON-RPC over standard input and output", setUpServe);

}  // namespace
}  // namespace retrograd::cli
