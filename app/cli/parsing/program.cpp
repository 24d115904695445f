#include "app/cli/parsing/program.h"

namespace retrograd::cli {
namespace {

const ProgramFunctions* functions_ = nullptr;

}  // namespace

const ProgramFunctions* program() { return functions_; }

void setProgram(const ProgramFunctions& functions) { functions_ = &functions; }

}  // namespace retrograd::cli
