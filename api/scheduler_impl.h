/* SPDX-License-Identifier: MIT
 * The fields of a scheduler of libwager. */
#ifndef WG_API_SCHEDULER_IMPL_H
#define WG_API_SCHEDULER_IMPL_H

#include "api/api_impl.h"
#include "core/sched/sched.h"
#include "core/text/chat.h"
#include "core/text/grammar/constraint.h"

#include <pthread.h>

struct wg_scheduler {
    wg_session *session; /* its engine runs for the scheduler alone */
    wg_sched *sched;
    pthread_mutex_t grammar_lock; /* of what follows */
    wg_token_trie *trie;          /* of the vocabulary, for grammars; NULL: none has been opened */
    struct wg_grammar *grammars;  /* all that are compiled, the last used one first */
};

struct wg_grammar {
    wg_constraint of;
    wg_scheduler *scheduler;
    wg_grammar *next;
    wg_grammar_kind kind;
    char *text; /* (bytes) */
    size_t bytes;
    uint64_t hash; /* of the text */
    int users;     /* opens without their close; 0: it is kept for the next one */
};

/* Releases the grammars, of which none is used any more, and the trie. */
void wg_scheduler_free_grammars(wg_scheduler *s);

/* The template of its conversations: the config's, else the model's own, else none. */
wg_chat wg_scheduler_template(const wg_scheduler *s);

#endif
