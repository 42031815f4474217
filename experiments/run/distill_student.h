/* SPDX-License-Identifier: MIT
 * The network of a student: its shape, and the weights that it begins with. */
#ifndef WG_EXPERIMENTS_RUN_DISTILL_STUDENT_H
#define WG_EXPERIMENTS_RUN_DISTILL_STUDENT_H

#include "experiments/config/distill_config.h"

/* The shape of a student of this target: the config's, its `init` file's, or the target's with fewer layers. Errors: those of
 * reading; EVOCAB: another tokenizer than the target's; EINVAL: a layer that the target lacks, another width than the head's, a
 * context shorter than `length`; EUNSUPPORTED (wg_net_check). */
wg_status wg_distill_arch(wg_arch *out, const wg_distill_student *s, const wg_target *target, int length, wg_error *err);

/* Sets the weights of a network of that shape, and freezes those that the student does not train. */
wg_status wg_distill_begin(wg_net *net, const wg_distill_student *s, const wg_target *target, wg_error *err);

#endif
