/* Memory straight from the system. */
#ifndef TW_MPSC_MAP_H
#define TW_MPSC_MAP_H

#include <stddef.h>

/* Maps zeroed memory whose pages come when they are first touched. NULL: the system refuses. */
void *tw__map(size_t bytes);

#endif
