#pragma once
// Handles of CUDA libraries that are not needed: see cublas_v2.h.
#include "cusolver_common.h"
typedef struct cusolverDnContext* cusolverDnHandle_t;
