/**
 * What every result of a call begins with.
 */

import type { Call, CallResult } from "../../Call.ts"

/** The result of a call: whose it is, and what came of it. */
export const resultOf = (
  { input, kind, callId, name }: Call,
  came: Omit<CallResult, "callId" | "name" | "kind" | "input">
): CallResult => ({ callId, name: name, kind, input, ...came })
