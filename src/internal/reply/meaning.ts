/**
 * The meaning of a reply, as a value.
 */

import * as Result from "effect/Result"
import type { Block } from "../../Block.ts"
import type { Call } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import * as InstructionBuilder from "../../InstructionBuilder.ts"
import type { Limits } from "../../Limits.ts"
import type { Message } from "../../Message.ts"
import type { Outcome } from "../../RunState.ts"
import * as Bounds from "../base/bounds.ts"
import { clip } from "../base/text.ts"
import type { FinishReason } from "../../StreamPart.ts"
import type { ReplyRules } from "./replyRules.ts"

/** An event about a reply, in the order in which they are emitted. */
export type Fact =
  | { readonly type: "blocks_parsed"; readonly blocks: ReadonlyArray<Block> }
  | { readonly type: "plan_rejected"; readonly reason: string; readonly raw: string }
  | { readonly type: "plan"; readonly content: string }
  | { readonly type: "json"; readonly content: string }
  | { readonly type: "blocks_ignored"; readonly kinds: ReadonlyArray<string>; readonly reason: string }
  | { readonly type: "informational_only"; readonly kinds: ReadonlyArray<string> }
  | { readonly type: "no_blocks_stall"; readonly prosePreview: string; readonly kinds: ReadonlyArray<string> }
  | { readonly type: "reply_cut"; readonly finishReason: FinishReason }
  | { readonly type: "loop_detected"; readonly repeats: number; readonly names: ReadonlyArray<string> }
  | { readonly type: "output_rejected"; readonly detail: string }

/** What a reply asks for. */
export interface Meaning {
  readonly outcome: Outcome
  readonly calls: ReadonlyArray<Call>
  readonly facts: ReadonlyArray<Fact>
  /** The answer as the agent's output schema decoded it. */
  readonly output?: unknown
}

/** A meaning, and the message that the conversation keeps of the reply. */
export interface Intent extends Meaning {
  readonly message: Message
}

/** A reply that asks for calls. */
export const calling = (
  outcome: Outcome,
  calls: ReadonlyArray<Call>,
  limits: Limits,
  facts: ReadonlyArray<Fact>
): Meaning => ({ outcome, calls: bounded(oneTransfer(calls), limits), facts })

/** An answer, or a corrective when it does not fit the agent's output schema. */
export const finished = (
  text: string,
  type: "final" | "prose",
  rules: ReplyRules,
  facts: ReadonlyArray<Fact>
): Meaning => {
  const output = rules.readOutput(text)
  if (Result.isSuccess(output)) return { outcome: { type, text }, calls: [], facts, output: output.success }
  const rejected: Fact = { type: "output_rejected", detail: output.failure }
  return corrected("output", InstructionBuilder.output(output.failure), [...facts, rejected])
}

/** A reply that gets a corrective instead of results. */
export const corrected = (
  reason: Extract<Outcome, { readonly type: "corrective" }>["reason"],
  corrective: string,
  facts: ReadonlyArray<Fact>
): Meaning => ({ outcome: { type: "corrective", reason, corrective }, calls: [], facts })

/** A conversation is handed over once: later transfers of a reply get an error instead of running. */
const oneTransfer = (calls: ReadonlyArray<Call>): ReadonlyArray<Call> => {
  const first = calls.find(({ kind }) => kind === "handoff")
  if (first === undefined) return calls
  const fault = Calls.error("AlreadyHandedOver", `The same reply hands the conversation over by '${first.name}'.`)
  return calls.map((call) => (call.kind === "handoff" && call !== first ? { ...call, fault } : call))
}

/** Calls beyond the limit get an error instead of running; those far beyond it are dropped. */
const bounded = (calls: ReadonlyArray<Call>, { blocksPerReply: limit }: Limits): ReadonlyArray<Call> => {
  if (calls.length <= limit) return calls
  const fault = Calls.error("LimitExceeded", `Only ${limit} calls of one reply are run.`)
  return calls.slice(0, limit + Bounds.blocksBeyond).map((call, index) => (index < limit ? call : { ...call, fault }))
}

/** Bounds the text for the model, which may quote what the model wrote. */
export const shortened = (outcome: Outcome, { limits: { resultBytes } }: ReplyRules): Outcome => {
  if (outcome.type === "corrective") return { ...outcome, corrective: clip(outcome.corrective, resultBytes) }
  return "note" in outcome && outcome.note !== undefined
    ? { ...outcome, note: clip(outcome.note, resultBytes) }
    : outcome
}
