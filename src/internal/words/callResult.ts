/**
 * What every result of a call begins with.
 */

import type { Call, CallResult } from "../../Call.ts"

/** The result of a call: whose it is, and what came of it. */
export const resultOf = (
  { input, kind, toolCallId, toolName }: Call,
  came: Omit<CallResult, "toolCallId" | "toolName" | "kind" | "input">
): CallResult => ({ toolCallId, toolName, kind, input, ...came })
