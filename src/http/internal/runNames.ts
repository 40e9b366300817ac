/**
 * Run ids of callers. The id of a run begins with the id of its caller, so an id that a client chooses can only name a
 * run of its own.
 */

import type { Caller } from "../Access.ts"

/** The beginning of all run ids of a caller. Those of an operator begin with anything. */
export const prefixOf = ({ id, isOperator = false }: Caller): string =>
  // No caller's prefix begins with another one: it holds exactly one `~`, at its end.
  isOperator ? "" : `${encodeURIComponent(id).replaceAll("~", "%7E")}~`

/** The run id for a name that a caller chose. A whole run id of the caller stays as it is. */
export const runIdOf = (caller: Caller, name: string): string => {
  const prefix = prefixOf(caller)
  return name.startsWith(prefix) ? name : prefix + name
}

/** Tells whether a run is the caller's own, or everybody's to an operator. */
export const isOwn = (caller: Caller, runId: string): boolean => runId.startsWith(prefixOf(caller))
