#include <endian.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "examples/cache/table.h"

#define LEAST_BUCKETS 1
#define ALLOCATION_OVERHEAD 8

struct shard shards[SHARDS];
static uint64_t seed[2];

static void bytes_changed(struct shard *s, size_t more, size_t less)
{
	size_t bytes = atomic_load_explicit(&s->bytes, memory_order_relaxed);
	atomic_store_explicit(&s->bytes, bytes + more - less, memory_order_relaxed);
}

static size_t footprint(struct entry *e)
{
	return malloc_usable_size(e) + ALLOCATION_OVERHEAD;
}

void table_init(void)
{
	if (getrandom(seed, sizeof(seed), 0) != sizeof(seed))
		abort();
	/* Locks are held for less time than falling asleep takes, so a waiter spins first. */
	pthread_mutexattr_t spins;
	pthread_mutexattr_init(&spins);
	pthread_mutexattr_settype(&spins, PTHREAD_MUTEX_ADAPTIVE_NP);
	for (size_t i = 0; i < SHARDS; i++) {
		struct shard *s = &shards[i];
		pthread_mutex_init(&s->lock, &spins);
		s->count = s->base = s->room = LEAST_BUCKETS;
		s->buckets = allocate(s->room * sizeof(*s->buckets));
		memset(s->buckets, 0, s->room * sizeof(*s->buckets));
		atomic_init(&s->bytes, s->room * sizeof(*s->buckets));
	}
	pthread_mutexattr_destroy(&spins);
}

void table_free(void)
{
	for (size_t i = 0; i < SHARDS; i++) {
		pthread_mutex_destroy(&shards[i].lock);
		free(shards[i].buckets);
	}
}

/* ------------------------------------------------------------------ hash */

static inline uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static inline void mix(uint64_t v[4], int rounds)
{
	for (int i = 0; i < rounds; i++) {
		v[0] += v[1];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[0] = rotate(v[0], 32);
		v[2] += v[3];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

uint64_t siphash(const uint64_t key[2], const void *bytes, size_t length)
{
	uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
			 key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
	const unsigned char *at = bytes, *end = at + (length & ~(size_t)7);
	uint64_t word;
	for (; at < end; at += 8) {
		memcpy(&word, at, 8);
		word = le64toh(word);
		v[3] ^= word;
		mix(v, 1);
		v[0] ^= word;
	}
	word = 0;
	memcpy(&word, at, length & 7);
	word = le64toh(word) | (uint64_t)length << 56;
	v[3] ^= word;
	mix(v, 1);
	v[0] ^= word;
	v[2] ^= 0xff;
	mix(v, 3);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t table_hash(struct slice key)
{
	return siphash(seed, key.data, key.length);
}

/* ------------------------------------------------------------------ entries */

struct entry *entry_make(struct slice key, size_t length)
{
	struct entry *e = allocate(sizeof(*e) + key.length + length);
	*e = (struct entry){.key_length = (uint32_t)key.length, .value_length = (uint32_t)length};
	memcpy(e->bytes, key.data != NULL ? key.data : "", key.length);
	return e;
}

char *entry_room(struct entry *e)
{
	return e->bytes + e->key_length;
}

size_t entry_capacity(struct entry *e)
{
	return malloc_usable_size(e) - sizeof(*e) - e->key_length;
}

/* ------------------------------------------------------------------ buckets */

static size_t bucket_of(const struct shard *s, uint64_t hash)
{
	size_t bucket = hash & (2 * s->base - 1);
	return bucket < s->count ? bucket : bucket & (s->base - 1);
}

static void set_room(struct shard *s, size_t room)
{
	size_t size = sizeof(*s->buckets);
	s->buckets = reallocate(s->buckets, room * size);
	bytes_changed(s, room * size, s->room * size);
	s->room = room;
}

/*
 * Splits the next bucket in order: one more bit of the hash tells which entries move to the new
 * bucket.
 */
static void grow(struct shard *s)
{
	if (s->count == s->room)
		set_room(s, s->room + s->room / 8 + 1);
	size_t from = s->count - s->base, to = s->count++;
	struct entry **stay = &s->buckets[from], **move = &s->buckets[to];
	for (struct entry *e = *stay; e != NULL; e = e->next) {
		struct entry ***end = (table_hash(entry_key(e)) & s->base) ? &move : &stay;
		**end = e;
		*end = &e->next;
	}
	*stay = *move = NULL;
	if (s->count == 2 * s->base)
		s->base *= 2;
}

/* The reverse: the last bucket's entries go back to the bucket that they were split from. */
static void shrink(struct shard *s)
{
	if (s->count == s->base)
		s->base /= 2;
	s->count--;
	struct entry **end = &s->buckets[s->count - s->base];
	while (*end != NULL)
		end = &(*end)->next;
	*end = s->buckets[s->count];
	if (s->count < s->room / 2)
		set_room(s, s->room / 2 + s->room / 8);
}

/* The link that points to the entry. */
static struct entry **link_of(struct shard *s, uint64_t hash, const struct entry *e)
{
	struct entry **link = &s->buckets[bucket_of(s, hash)];
	while (*link != e)
		link = &(*link)->next;
	return link;
}

struct entry *table_find(struct shard *s, uint64_t hash, struct slice key)
{
	struct entry *e = s->buckets[bucket_of(s, hash)];
	while (e != NULL &&
	       (e->key_length != key.length || memcmp(e->bytes, key.data, key.length) != 0))
		e = e->next;
	return e;
}

static void set_keys(struct shard *s, size_t keys)
{
	atomic_store_explicit(&s->keys, keys, memory_order_relaxed);
}

void table_link(struct shard *s, uint64_t hash, struct entry *e)
{
	struct entry **bucket = &s->buckets[bucket_of(s, hash)];
	e->next = *bucket;
	*bucket = e;
	set_keys(s, s->keys + 1);
	bytes_changed(s, footprint(e), 0);
	if (s->keys > s->count)
		grow(s);
}

void table_unlink(struct shard *s, uint64_t hash, struct entry *e)
{
	*link_of(s, hash, e) = e->next;
	set_keys(s, s->keys - 1);
	bytes_changed(s, 0, footprint(e));
	while (s->keys < s->count / 2 && s->count > LEAST_BUCKETS) /* twice at most */
		shrink(s);
}

/* ------------------------------------------------------------------ all entries */

void table_each(struct shard *s, table_visit *visit, void *arg)
{
	for (size_t i = 0; i < s->count; i++)
		for (struct entry *e = s->buckets[i]; e != NULL; e = e->next)
			visit(arg, s, e);
}

void table_clear(struct shard *s, table_visit *visit, void *arg)
{
	for (size_t i = 0; i < s->count; i++) {
		for (struct entry *e = s->buckets[i], *next; e != NULL; e = next) {
			next = e->next;
			bytes_changed(s, 0, footprint(e));
			visit(arg, s, e);
		}
		s->buckets[i] = NULL;
	}
	set_keys(s, 0);
	s->count = s->base = LEAST_BUCKETS;
	set_room(s, LEAST_BUCKETS);
}

static uint64_t reversed(uint64_t x)
{
	x = (x & 0x5555555555555555) << 1 | (x >> 1 & 0x5555555555555555);
	x = (x & 0x3333333333333333) << 2 | (x >> 2 & 0x3333333333333333);
	x = (x & 0x0f0f0f0f0f0f0f0f) << 4 | (x >> 4 & 0x0f0f0f0f0f0f0f0f);
	return __builtin_bswap64(x);
}

/*
 * The cursor counts through hashes, their lowest bit first. In that order the hashes of a bucket
 * are neighbors, and a bucket that is split gives two buckets that are neighbors. So whatever has
 * been passed stays passed.
 */
uint64_t table_scan(struct shard *s, uint64_t cursor, table_visit *visit, void *arg)
{
	size_t bucket = bucket_of(s, cursor);
	bool is_split = bucket >= s->base || bucket + s->base < s->count;
	uint64_t mask = (is_split ? 2 : 1) * s->base - 1;
	for (struct entry *e = s->buckets[bucket]; e != NULL; e = e->next)
		visit(arg, s, e);
	return reversed(reversed(cursor | ~mask) + 1);
}

struct entry *table_any(struct shard *s, uint64_t random)
{
	if (s->keys == 0)
		return NULL;
	size_t bucket = bucket_of(s, random);
	while (s->buckets[bucket] == NULL)
		bucket = (bucket + 1) % s->count;
	struct entry *e = s->buckets[bucket];
	for (random >>= 32; e->next != NULL && random % 2 != 0; random >>= 1)
		e = e->next;
	return e;
}
