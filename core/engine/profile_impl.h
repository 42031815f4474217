/* SPDX-License-Identifier: MIT
 * The fields of a profile, private to profile*.c and their tests. */
#ifndef WG_CORE_ENGINE_PROFILE_IMPL_H
#define WG_CORE_ENGINE_PROFILE_IMPL_H

#include <jansson.h>

#include "core/engine/profile.h"

enum { WG_PROFILE_ENTRIES = 1024, WG_PROFILE_TEXT = 160 };

typedef enum wg_price_kind { WG_PRICE_TARGET, WG_PRICE_DRAFT, WG_PRICE_ROW } wg_price_kind;

/* Which prices: of passes of `target`; of `draft` after it; of a row of its vocabulary under a sampler chain. */
typedef struct wg_price_key {
    wg_price_kind kind;
    wg_lm_identity target, draft;
    char chain[WG_PROFILE_TEXT];
} wg_price_key;

typedef struct wg_price_entry {
    wg_price_key key;
    wg_prices price;
    double others;    /* as in wg_disturbance */
    bool used, fresh; /* asked for; measured here and not in the cache yet */
} wg_price_entry;

typedef enum wg_profile_use { WG_PROFILE_CACHED, WG_PROFILE_NEW, WG_PROFILE_NOMINAL, WG_PROFILE_FILE } wg_profile_use;

/* What stands above the entries. */
typedef struct wg_profile_machine {
    char wager[32], cpu[WG_PROFILE_TEXT], level[16];
    int ranks;
} wg_profile_machine;

struct wg_profile {
    wg_profile_use use;
    char *folder;               /* (owned) of the cache; NULL: nothing is kept, */
    char why_not[256];          /* because of this; "": it was asked for */
    char *path;                 /* (owned) of a FILE */
    wg_profile_machine machine; /* this one, or the FILE's */
    wg_price_entry *entry;      /* (entries) owned */
    int entries;
    bool nominal, measured, refused; /* nominal prices were asked for; something was measured; a file of the cache was bad */
    double measuring;                /* seconds */
    int lock;                        /* of the cache while something is measured; 0: none */
    wg_profile_options options;      /* say, user, quiet */
};

wg_profile_machine wg_profile_this_machine(void);
bool wg_profile_is_of(const wg_price_entry *e, const wg_lm_identity *target);
bool wg_price_key_same(const wg_price_key *a, const wg_price_key *b, bool threads); /* threads: those too */
wg_price_entry *wg_profile_find(const wg_profile *p, const wg_price_key *key);
wg_status wg_profile_add(wg_profile *p, const wg_price_entry *e, wg_error *err); /* ENOMEM */
void wg_profile_say(const wg_profile *p, bool warning, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Adds the entries of a text that p has not. name stands for its path. machine: what it was measured on. EFORMAT: where, and
 * what was expected; nothing was added then. ENOMEM. */
wg_status wg_profile_parse(wg_profile *p, const char *name, const char *text, size_t n, wg_profile_machine *machine,
                           wg_error *err);
/* The JSON of entries: those that are used, or all. NULL: out of memory. */
json_t *wg_profile_json(const wg_profile *p, bool used);

/* The cache. user_folder: where it is, owned by the caller; NULL, and why. load: the entries that it has of a target on this
 * machine; a bad file is said and passes for none. store: puts the fresh entries of a target there. */
/* lock: waits up to ten seconds while another process measures, so that both get its prices and neither disturbs the other;
 * true where the cache may have them now. A program that holds it longer is not waited for. */
bool wg_profile_lock(wg_profile *p);
void wg_profile_unlock(wg_profile *p);
char *wg_profile_user_folder(char *why, size_t size);
wg_status wg_profile_load(wg_profile *p, const wg_lm_identity *target, wg_error *err);
wg_status wg_profile_store(wg_profile *p, const wg_lm_identity *target, char *path, size_t size, wg_error *err);

#endif
