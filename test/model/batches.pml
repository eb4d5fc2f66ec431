/*
 * The ring of a source (executor/pool/batch_ring.h): one producer, two consumers, a ring of two
 * cells that goes round twice.
 *
 * Guarantees
 *   BATCHES1  no cell is written before the batch in it has been read
 *   BATCHES2  no cell is read that was not written: each batch is popped once, in order
 *   run:   BATCHES1 BATCHES2
 *   mutant: NO_ROOM  the producer does not look at head: a batch is overwritten
 *   mutant: STORED_HEAD  head is stored in place of the compare-and-swap: a batch is popped twice
 *   mutant: TAIL_FIRST  the tail is raised before the cell is written: an old batch is popped
 *   mutant: OLD_TAIL  the tail is read before head: head passes it
 */
#define SIZE 2
#define BATCHES 4
#define CONSUMERS 2

byte cells[SIZE];
byte head, tail, popped[BATCHES + 1], gone;

active proctype producer()
{
	byte i = 1;
	do
	:: i <= BATCHES ->
#ifndef NO_ROOM
		tail - head < SIZE; /* BATCHES1 */
#endif
#ifdef TAIL_FIRST
		tail++;
		cells[(tail - 1) % SIZE] = i;
#else
		cells[tail % SIZE] = i;
		tail++;
#endif
		i++
	:: else -> break
	od
}

active [CONSUMERS] proctype consumer()
{
	byte at, end, batch;
	do
	:: gone < BATCHES ->
#ifdef OLD_TAIL
		end = tail;
		at = head;
#else
		at = head; /* BATCHES2 */
		end = tail;
#endif
		if
		:: at == end -> skip
		:: else ->
			batch = cells[at % SIZE];
			atomic {
				if
#ifdef STORED_HEAD
				:: true ->
#else
				:: head == at -> /* BATCHES1, BATCHES2 */
#endif
					head = at + 1;
					assert(head <= tail);
					assert(batch != 0 && popped[batch] == 0);
					assert(batch == 1 || popped[batch - 1] == 1);
					popped[batch] = 1;
					gone++;
				:: else
				fi
			}
		fi
	:: else -> break
	od
}
