/* SPDX-License-Identifier: MIT
 * Temporary files and folders beside the name that they are to get: NAME.PID-I.part, NAME.PID.part. Whoever writes one holds a
 * lock (flock) on it, which ends with the process however that ends, so the next writer of NAME can tell and remove what a
 * killed one left. Where a file system has no locks nothing is removed. */
#ifndef WG_CORE_BASE_PART_LOCK_H
#define WG_CORE_BASE_PART_LOCK_H

#include <stdbool.h>

/* Locks a part that was just made and is open as fd, until its last descriptor is closed. False: somebody took it for a left
 * one and removed it in between; make another. */
bool wg_part_lock(int fd);

/* Removes the parts of NAME (path) that nobody writes any more: files, and folders of files. */
void wg_part_sweep(const char *path);

/* Removes a folder and the files in it. */
void wg_part_remove_folder(const char *path);

#endif
