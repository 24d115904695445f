#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/trace/argument.h"
#include "core/trace/symbol.h"

namespace retrograd {

/// Makes an argument that a file gives fit its schema type: an integer for a float becomes a real, a single number for
/// a list of fixed length represents all of them, a string for a device becomes one. `isNumber`: it is a number, or a
/// value that is one. `what` names the kind in errors ("an integer"). Throws Error(badInput) where it cannot fit. What
/// values of the graph are is for the caller to check.
void conform(Argument& argument, const SchemaType& type, bool isNumber, std::string_view what);

/// What a name of torch or math means as an argument: "torch.float32", "torch.strided", "torch.channels_last",
/// "math.inf", "torch.ops.aten.mm.default". nullopt for any other name.
std::optional<Argument> namedConstant(std::string_view path);

/// Whether tensors may be given: the type is Tensor, a list of them, or one that says nothing.
bool takesTensor(const SchemaType& type);

/// "SymInt[]?", for messages.
std::string typeText(const SchemaType& type);

}  // namespace retrograd
