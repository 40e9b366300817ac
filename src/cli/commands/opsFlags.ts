/** The flags of `kernai ops`. */

import * as Shared from "./flags.ts"

export const opsFlags = { store: Shared.store, json: Shared.toggle("json", "Print a line of JSON for each group") }

/** The values of the flags of `ops`. */
export type OpsFlags = Shared.Values<typeof opsFlags>
