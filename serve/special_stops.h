/* SPDX-License-Identifier: MIT
 * Stop strings that are special tokens. Such a token has no text in an answer ("<|im_end|>"), so it becomes a stop token. */
#ifndef WG_SERVE_SPECIAL_STOPS_H
#define WG_SERVE_SPECIAL_STOPS_H

#include "serve/server.h"

/* Adds the tokens of such stop strings to r->stop_token. false: a stop string has a special token beside other text (*p:
 * 400). */
bool wgs_special_stops(const wgs_server *s, wgs_request *r, wgs_problem *p);

#endif
