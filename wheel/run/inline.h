/* The inline executor. */
#ifndef TW_WHEEL_INLINE_H
#define TW_WHEEL_INLINE_H

#include "tickwheel/executor.h"

extern tw_executor tw__inline_executor;

#endif
