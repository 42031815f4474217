/* SPDX-License-Identifier: MIT
 * Paths of the bundled models (models/README.md) from the root of the repository, in which tests run. The names say what a
 * file is for, not which weights it has, so they stay when the pair is trained anew. */
#ifndef WG_TESTS_BUNDLED_H
#define WG_TESTS_BUNDLED_H

#define BUNDLED_TARGET "models/story-target-q8_0.gguf"
#define BUNDLED_DRAFT "models/story-draft-q8_0.gguf"
#define BUNDLED_OTHER "models/cross/story-draft-1k-q8_0.gguf" /* a draft model with a vocabulary of its own */

#endif
