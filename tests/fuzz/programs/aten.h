// Precompiled for the units of the fuzzer.
#pragma once
#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <string>
#include <vector>
