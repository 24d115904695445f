#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace retrograd::cli {

/// What is wrong with a command line, with the name that was probably meant: "trace: there is no option --shw; did you
/// mean '--show'?".
std::string explain(const CLI::App& program, const CLI::ParseError& error);

/// The subcommands that help lists.
std::vector<std::string> subcommandNames(const CLI::App& app);

/// "; did you mean 'trace'?", and where subcommands are listed.
std::string meantSubcommand(const CLI::App& app, const std::string& word);

/// "retrograd: MESSAGE" on standard error.
void printError(std::string_view message);

}  // namespace retrograd::cli
