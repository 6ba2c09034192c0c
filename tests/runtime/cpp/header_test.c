/* SPDX-License-Identifier: BSD-3-Clause */
/* The header in C11: it compiles without warnings, and C code can use it. */
#include <openreg/openreg.h>

static void set_flag(void* args) {
  *(int*)args = 1;
}

/* Returns 0 if a C program can launch a kernel and copy memory. */
int use_from_c(void);
int use_from_c(void) {
  orStream_t stream = NULL;
  orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
  void* block = NULL;
  int flag = 0;
  char in[4] = {1, 2, 3, 4};
  char out[4] = {0, 0, 0, 0};
  if (orStreamCreate(&stream) != orSuccess ||
      orMalloc(&block, sizeof(in)) != orSuccess ||
      orLaunchKernel(stream, set_flag, &flag, NULL) != orSuccess ||
      orStreamSynchronize(stream) != orSuccess ||
      orMemcpy(block, in, sizeof(in), orMemcpyHostToDevice) != orSuccess ||
      orMemcpy(out, block, sizeof(out), orMemcpyDeviceToHost) != orSuccess ||
      orPointerGetAttributes(&attributes, block) != orSuccess ||
      orFree(block) != orSuccess || orStreamDestroy(stream) != orSuccess) {
    return 1;
  }
  return flag == 1 && out[3] == 4 && attributes.type == orMemoryTypeDevice ? 0
                                                                           : 2;
}
