/**
 * Run ids of callers. The id of a run begins with the id of its caller, so an id that a client chooses can only name a
 * run of its own.
 */

import type { Caller as StoredCaller } from "../../RunState.ts"
import type { RunHead } from "../../RunStore.ts"
import { type Caller, operator } from "../Access.ts"

/** Returns the prefix of all run ids of a caller, which is empty for an operator. */
const prefixOf = (caller: Caller): string =>
  // No prefix begins with another one, since each has exactly one `~`, at its end.
  caller.isOperator === true ? "" : `${keyOf(caller)}~`

/** Returns the name by which a caller is counted: no other caller has it. */
export const keyOf = ({ id, tenant }: Caller): string =>
  // No encoded id contains `@`.
  `${encoded(id)}${tenant === undefined ? "" : `@${encoded(tenant)}`}`

const encoded = (text: string): string => encodeURIComponent(text).replaceAll("~", "%7E")

/** Returns the run id for a name that a caller chose. A whole run id of the caller stays unchanged. */
export const runIdOf = (caller: Caller, name: string): string => {
  const prefix = prefixOf(caller)
  return name.startsWith(prefix) ? name : prefix + name
}

/** Returns true if a run is the caller's own, or if the caller is an operator. */
export const isOwn = (caller: Caller, runId: string): boolean => runId.startsWith(prefixOf(caller))

/** Returns a caller as it is stored with the caller's runs and answers. */
export const stored = ({ isOperator = false, roles = [], ...caller }: Caller): StoredCaller => {
  const all = isOperator && !roles.includes("operator") ? roles.concat("operator") : roles
  return { ...caller, ...(all.length === 0 ? {} : { roles: all }) }
}

/** Returns the caller who started a run, as the name of the run says: a run without a prefix is an operator's. */
export const ownerOf = ({ caller, rootRunId }: Pick<RunHead, "caller" | "rootRunId">): Caller => {
  if (caller === undefined) return operator
  return isOwn(caller, rootRunId) ? caller : { ...caller, isOperator: true }
}
