/** The caller of the runs that this program starts, and of the answers that it gives unless others are named. */

import type { Caller } from "../RunState.ts"

export const localCaller: Caller = { id: "the command line" }
