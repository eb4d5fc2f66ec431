# The answers of the calls against the lists in the headers.

# Prints what calls really answer, for test/contract/answers.sh.
$B/test/contract/answers: $(patsubst %.c,$B/%.o,$(wildcard test/contract/*.c) test/support/faults.c) $(archives)
	$(call say,link)$(CC) $(links) $(addprefix -Wl$(comma)--wrap=,$(wrapped)) $(CFLAGS) -o $@ $^ -lm

# The rows of bad calls, for test/contract/answers.sh.
$B/plain/misuses: $(patsubst %.c,$B/plain/%.o,$(wildcard test/unit/misuse/*.c) test/support/expect.c test/plain/run.c) \
		$(archives)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ -lm

.PHONY: check-answers

check-answers: deps-build ## each list of errors in a header is what calls really answer (test/contract)
	$(again) $B/test/contract/answers $B/plain/misuses
	$(Q)test/contract/comments.sh
	$(Q)test/contract/answers.sh $B/test/contract/answers $B/plain/misuses
