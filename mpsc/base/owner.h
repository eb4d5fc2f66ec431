/* The struct of this type that has `member` at this address. */
#ifndef TW_MPSC_OWNER_H
#define TW_MPSC_OWNER_H

#include <stddef.h>

#define TW__OWNER(type, member, address) \
	((type *)(void *)((char *)(address)-offsetof(type, member)))

#endif
