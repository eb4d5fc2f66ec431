/*
 * The keys: a hash table in shards, each under a lock of its own.
 *
 * A key, its value and its timer's handle are one allocation: struct entry. A shard is a linear
 * hash table (Litwin, 1980): it grows and shrinks by one bucket at a time, so no call moves more
 * than two chains, and it has about one bucket a key at any size.
 *
 * Why a lock a shard, and not a loop for each: README.md has the measurement.
 *
 * Every function here needs the shard's lock, unless it says otherwise.
 */
#ifndef EXAMPLES_CACHE_TABLE_H
#define EXAMPLES_CACHE_TABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "examples/cache/buffer.h"
#include "tickwheel.h"

#define SHARDS 64
#define MAX_STRING (1u << 29)

struct entry {
	struct entry *next;        /* in its bucket */
	tw_timer timer;            /* see expiry.c */
	uint64_t deadline_ms : 63; /* Unix time; 0: none */
	uint64_t dead : 1;         /* out of the table; its timer's callback frees it */
	/* constant, as the key is: the callback reads them without the lock. */
	uint32_t key_length;
	uint32_t value_length;
	char bytes[]; /* the key, then the value */
};

/* What has happened to keys with a deadline. Written under the lock, read by anyone. */
struct shard_figures {
	_Atomic uint64_t volatile_made; /* deadlines given to keys that had none */
	_Atomic uint64_t expired;
	_Atomic uint64_t volatile_ended; /* by DEL, overwrite, PERSIST and so on */
	_Atomic uint64_t met_in_flight;  /* changes to a key whose timer had been claimed */
	_Atomic uint64_t timers_refused;
};

struct shard {
	_Alignas(128) pthread_mutex_t lock;
	struct entry **buckets;
	size_t count, room; /* buckets in use, and allocated */
	size_t base;        /* power of two, base <= count < 2 * base */
	_Atomic size_t keys, volatile_keys;
	_Atomic size_t bytes; /* of entries and buckets, as the allocator counts them */
	struct shard_figures figures;
};

extern struct shard shards[SHARDS];

static inline void figure_add(_Atomic uint64_t *figure, uint64_t n)
{
	atomic_store_explicit(figure, atomic_load_explicit(figure, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline uint64_t figure_read(_Atomic uint64_t *figure)
{
	return atomic_load_explicit(figure, memory_order_relaxed);
}

static inline struct slice entry_key(const struct entry *e)
{
	return (struct slice){e->bytes, e->key_length};
}

static inline struct slice entry_value(const struct entry *e)
{
	return (struct slice){e->bytes + e->key_length, e->value_length};
}

/* No lock needed. The hash is seeded at random by table_init. */
void table_init(void);
void table_free(void);
uint64_t table_hash(struct slice key);

/* SipHash-1-3 (Aumasson and Bernstein, 2012): without the key nobody can craft collisions. */
uint64_t siphash(const uint64_t key[2], const void *bytes, size_t length);

static inline struct shard *table_shard(uint64_t hash)
{
	return &shards[hash >> 58];
}

/*
 * Makes an entry outside of the table, with room for a value of `length` bytes at entry_room. No
 * lock needed.
 */
struct entry *entry_make(struct slice key, size_t length);
char *entry_room(struct entry *e);

/* The longest value that fits the entry's allocation. */
size_t entry_capacity(struct entry *e);

struct entry *table_find(struct shard *s, uint64_t hash, struct slice key);

void table_link(struct shard *s, uint64_t hash, struct entry *e);
void table_unlink(struct shard *s, uint64_t hash, struct entry *e);

typedef void table_visit(void *arg, struct shard *s, struct entry *e);

/* Visits every entry. The visitor changes nothing in the table. */
void table_each(struct shard *s, table_visit *visit, void *arg);

/* Unlinks every entry and visits it. */
void table_clear(struct shard *s, table_visit *visit, void *arg);

/*
 * One step of a scan: visits a bucket, and returns the next cursor; 0: the shard is done. What is
 * there from the first step to the last is visited, however the table grows and shrinks
 * meanwhile; some of it perhaps twice.
 */
uint64_t table_scan(struct shard *s, uint64_t cursor, table_visit *visit, void *arg);

/* Any entry of the shard, or NULL if it is empty. */
struct entry *table_any(struct shard *s, uint64_t random);

/*
 * Keys that end on time: one tickwheel timer for each key with a deadline. expiry.c has these
 * functions, and the rules of ownership.
 */

/*
 * The entry of a key that is visible: in the table, and before its deadline. A key that is past
 * its deadline is removed here, and its end published, if its timer has not done so yet.
 */
struct entry *expiry_find(struct shard *s, uint64_t hash, struct slice key);

/* The same without removing: for visitors of the whole table. */
bool expiry_visible(const struct entry *e);

/*
 * Gives an entry a deadline, or moves it. The entry may be outside of the table still.
 * False: the service has no room for the timer. Nothing has changed then.
 */
bool expiry_set(struct shard *s, struct entry *e, uint64_t deadline_ms);

/* Takes the deadline away, if there is one. */
void expiry_clear(struct shard *s, struct entry *e);

/*
 * Ends an entry that was unlinked or replaced: cancels its timer and frees it, now or in the
 * timer's callback.
 */
void expiry_retire(struct shard *s, struct entry *e);

#endif
