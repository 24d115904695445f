#pragma once
// Handles of CUDA libraries that are not needed: see cublas_v2.h.
typedef struct cusparseContext* cusparseHandle_t;
enum cusparseStatus_t { CUSPARSE_STATUS_SUCCESS = 0 };
