/**
 * Options for generating a reply.
 *
 * A plain value. Absent options are left to the model. Options that a model does not take are not sent, and
 * `dropped` of the event `llm_response` names them.
 *
 * @since 0.1.0
 */

import { dual } from "effect/Function"
import type { generation } from "./internal/words/modelCallSchema.ts"
import type { TypeOf } from "./kit/schemas.ts"

/**
 * Options of one reply, common to all vendors.
 *
 * @category models
 * @since 0.1.0
 */
export interface Generation extends TypeOf<typeof generation> {}

/**
 * No options.
 *
 * @category constructors
 * @since 0.1.0
 */
export const empty: Generation = {}

/**
 * Merges two sets of options. Those of `over` take precedence; `extra` is merged by key.
 *
 * @category combinators
 * @since 0.1.0
 */
export const merge: {
  (over: Generation): (base: Generation) => Generation
  (base: Generation, over: Generation): Generation
} = /* @__PURE__ */ dual(2, (base: Generation, over: Generation): Generation => {
  if (over === empty) return base
  const given = Object.fromEntries(Object.entries(over).filter(([, value]) => value !== undefined && value !== null))
  const extra = { ...base.extra, ...over.extra }
  return { ...base, ...given, ...(Object.keys(extra).length > 0 ? { extra } : {}) }
})
