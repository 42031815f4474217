/* SPDX-License-Identifier: MIT
 * Temporary files and folders beside their final name NAME: NAME.PID-I.part, NAME.PID.part. Their writer holds a lock (flock),
 * which ends with the process in any case, so the next writer of NAME can recognise and remove parts of killed processes. On
 * file systems without locks nothing is removed. */
#ifndef WG_CORE_BASE_PART_LOCK_H
#define WG_CORE_BASE_PART_LOCK_H

#include <stdbool.h>

/* Locks a new part, open as fd, until its last descriptor is closed. False: another process took it for an abandoned one and
 * removed it; make another. */
bool wg_part_lock(int fd);

/* Removes the abandoned parts of NAME (path): files, and folders of files. */
void wg_part_sweep(const char *path);

/* Removes a folder and the files in it. */
void wg_part_remove_folder(const char *path);

#endif
