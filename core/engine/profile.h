/* SPDX-License-Identifier: MIT
 * A profile of the machine: what passes of models cost here. It is measured once and kept in the user's cache and beside
 * results, so that what is decided by prices (the drafter `auto`, the length policy `cost`, adaptive
 * speculation) is a function of seed, request and profile.
 *
 * Where it comes from: the user's cache, ${XDG_CACHE_HOME:-~/.cache}/wager/profiles, a file for each target on each machine;
 * what is missing there is measured, in at most two seconds for a target and two draft models, said aloud, and kept. Key: the
 * model's identity (core/model/identity.h: weights by digest, type of the cache, device, threads), that of the draft model, the
 * processor's name, the level of the kernels, ranks, wager's version. Measured while other programs computed, or with passes of
 * one size that differ much, prices are used and not kept.
 *
 * A file: {"format": "wager profile 1", "wager", "cpu", "level", "ranks", "entries": [...]} in canonical JSON. Each entry has
 * its key, `rows` and `seconds`. The digest of a profile is the SHA-256 of that text with the entries that were asked for. */
#ifndef WG_CORE_ENGINE_PROFILE_H
#define WG_CORE_ENGINE_PROFILE_H

#include "core/base/hash.h"
#include "core/dist/sampler.h"
#include "core/model/lm.h"

enum { WG_PRICE_SIZES = 24 };

/* Seconds of a pass by its rows. nominal: nothing was measured; the unit is a pass of the target over one row. */
typedef struct wg_prices {
    int n, rows[WG_PRICE_SIZES]; /* rising from 1 */
    double seconds[WG_PRICE_SIZES];
    double spread; /* of passes over one row: how much the median turn was above the fastest, as a share of it */
    bool nominal;
} wg_prices;
/* Of so many rows: linear between the sizes, beyond the last with its slope. */
double wg_prices_of(const wg_prices *p, double rows);

typedef struct wg_profile wg_profile;

/* How other programs disturbed a measurement. */
typedef struct wg_disturbance {
    double others, spread; /* processors that they kept busy on average (-1: not known); as in wg_prices, the largest */
    int cores, threads;    /* of the machine; of the passes */
} wg_disturbance;
/* Whether prices measured so are kept: other programs left the threads their processors, and the spread is at most a half. */
bool wg_profile_is_quiet(const wg_disturbance *d);

#define WG_PROFILE_DOC                                                                                                         \
    "prices of passes, by which auto and other lengths decide: a file; new: measured now; nominal: constants; empty: "         \
    "measured "                                                                                                                \
    "once and kept in ~/.cache/wager"

typedef struct wg_profile_options {
    const char *use;    /* "", NULL: the user's cache; "new": measured, over what the cache has; "nominal": constants of models;
                      * else a FILE, which alone is used: prices of models that it lacks are an error. Those of another machine,
                      * which is said, of other threads and of rows under another sampler chain are taken as they are */
    const char *folder; /* in place of the user's cache; "": nothing is kept; NULL: the user's */
    void (*say)(void *user, bool warning, const char *text); /* a line without its end; NULL: the log */
    void *user;
    bool (*quiet)(const wg_disturbance *d); /* NULL: wg_profile_is_quiet */
} wg_profile_options;

/* Errors: of a FILE, ENOENT, EFORMAT (no profile, or damaged: where, and what was expected); ENOMEM. */
wg_status wg_profile_open(wg_profile **out, const wg_profile_options *o, wg_error *err);
void wg_profile_close(wg_profile *p); /* NULL is fine */

/* Prices, from the profile or measured now; p NULL: nominal ones. Models must be attached. Errors: ECONFIG (a FILE lacks them),
 * those of passes, ENOMEM.
 *
 * target: of its passes. draft: of passes of a draft model that follow the target's. row: of a row of p or q, made of logits
 * and drawn from (of one row; nominal: 0). */
wg_status wg_profile_target(wg_profile *p, wg_lm *target, wg_prices *out, wg_error *err);
wg_status wg_profile_draft(wg_profile *p, wg_lm *draft, wg_lm *target, wg_prices *out, wg_error *err);
wg_status wg_profile_row(wg_profile *p, wg_lm *target, const wg_sampling *s, const wg_ops *ops, wg_prices *out, wg_error *err);

/* After prices were asked for: puts what was measured into the cache, and says where, or why not. Another process that measured
 * the same in the meantime goes first: its prices stay for the next. */
void wg_profile_keep(wg_profile *p);

/* Of what was asked for so far. text: owned by the caller (wg_free); NULL when out of memory. name: the digest in hex,
 * "nominal", or "" where nothing was asked for. */
char *wg_profile_text(const wg_profile *p);
const char *wg_profile_name(const wg_profile *p, char hex[WG_SHA256_HEX]);
wg_status wg_profile_save(const wg_profile *p, const char *path, wg_error *err); /* atomically; EIO */

#endif
