/**
 * What a reply means for the run: the one decision of a turn (BP-37 to BP-49, DR-26).
 *
 * Pure: a reply and what the agent may do go in, an outcome, the calls to make
 * and the facts to tell come out. A plan beats calls, calls beat a final, a
 * final beats talk; what is passed over is told to the model, not lost.
 */

import * as Result from "effect/Result"
import * as Block from "../../Block.ts"
import type { Call } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import type { Reply } from "../../Dialect.ts"
import * as InstructionBuilder from "../../InstructionBuilder.ts"
import type { Limits } from "../../Limits.ts"
import type { Message } from "../../Message.ts"
import * as Plan from "../../Plan.ts"
import type { Outcome } from "../../RunState.ts"
import type { FinishReason } from "../../StreamPart.ts"
import { ofTask, signed } from "../words/callIds.ts"
import type { JsonObject } from "../base/json.ts"
import { isJsonObject } from "../base/json.ts"

/** What the reading of a reply depends on besides the reply. */
export interface View {
  readonly turnId: string
  readonly depth: number
  readonly native: boolean
  /** Whether prose is a fault (BP-42). */
  readonly correctsProse: boolean
  /** Whether a reply of no words at all is an answer (BP-40). */
  readonly takesEmpty: boolean
  readonly limits: Limits
  readonly isProtocol: (type: string) => boolean
  /** Whether an earlier call has this id. */
  readonly isUsed: (id: string) => boolean
  /** The parameters of a command block's text, by the inputs its skill declares (BP-68). */
  readonly parameters: (skill: string, text: string) => JsonObject
  /** Why the answer does not fit the agent's output schema, if it does not. */
  readonly misfit: (text: string) => string | undefined
}

/** Something to tell about a reply, in order. */
export type Fact =
  | { readonly type: "blocks_parsed"; readonly blocks: ReadonlyArray<Block.Block> }
  | { readonly type: "plan_rejected"; readonly reason: string; readonly raw: string }
  | { readonly type: "plan"; readonly content: string }
  | { readonly type: "json"; readonly content: string }
  | { readonly type: "blocks_ignored"; readonly kinds: ReadonlyArray<string>; readonly reason: string }
  | { readonly type: "informational_only"; readonly kinds: ReadonlyArray<string> }
  | { readonly type: "no_blocks_stall"; readonly prosePreview: string; readonly kinds: ReadonlyArray<string> }
  | { readonly type: "reply_cut"; readonly finishReason: FinishReason }
  | { readonly type: "loop_detected"; readonly repeats: number; readonly names: ReadonlyArray<string> }
  | { readonly type: "output_rejected"; readonly detail: string }

/** The meaning of one reply. */
export interface Intent {
  readonly outcome: Outcome
  readonly calls: ReadonlyArray<Call>
  readonly facts: ReadonlyArray<Fact>
}

/** Reads a complete or cut reply. */
export const intent = (reply: Reply, view: View): Intent => {
  const facts: Array<Fact> = [{ type: "blocks_parsed", blocks: reply.blocks }]
  const finishReason = reply.finish?.reason ?? "unknown"
  // Only a reply that ended by itself has effects or can be an answer.
  if (finishReason !== "stop" && finishReason !== "tool-calls") {
    facts.push({ type: "reply_cut", finishReason })
    return corrected(finishReason === "error" ? "empty" : "cut", InstructionBuilder.cut(finishReason), facts)
  }
  // A model that says nothing has not answered.
  if (isEmpty(reply) && !view.takesEmpty) {
    const word = view.native || !view.correctsProse ? InstructionBuilder.emptyProse : InstructionBuilder.empty
    // Nothing is less than prose: where prose is a stall, so is this (BP-43).
    if (!view.native && view.correctsProse) facts.push({ type: "no_blocks_stall", prosePreview: "", kinds: [] })
    return corrected("empty", word, facts)
  }
  return view.native ? readNative(reply, view, facts) : readBlocks(reply, view, facts)
}

/** Whether a reply says nothing. */
export const isEmpty = (reply: Reply): boolean => reply.text === "" && reply.calls.length === 0

// ---------------------------------------------------------------- native calls

const readNative = (reply: Reply, view: View, facts: Array<Fact>): Intent => {
  if (reply.calls.length === 0) return finished(reply.text, "final", view, facts)
  const used = new Map<string, number>()
  const calls = reply.calls.map((call, index): Call => {
    const made: Call = {
      callId: idOf(call.id, index, view, used),
      name: call.name,
      input: isJsonObject(call.params) ? call.params : {},
      kind: view.isProtocol(call.name) ? "protocol" : call.name.startsWith("/") ? "builtin" : "skill",
      review: "unreviewed"
    }
    return isJsonObject(call.params)
      ? made
      : { ...made, fault: Calls.error("InvalidArguments", `The arguments of '${call.name}' are not a JSON object.`) }
  })
  return { outcome: { type: "tools" }, calls: bounded(calls, view.limits), facts }
}

/** The assistant message of a reply: its native calls under the ids their results will have. */
export const messageOf = (reply: Reply, view: View): Message => {
  const renamed = new Map<string, string>()
  const used = new Map<string, number>()
  let index = 0
  const content = reply.content.map((part): Content => {
    if (part.type !== "tool_use") return part
    // Calls of a cut reply, or far beyond the limit, are never made, but they are answered: each needs an id of its own.
    const callId = idOf(part.callId, index++, view, used)
    if (callId === part.callId) return part
    if (!renamed.has(part.callId)) renamed.set(part.callId, callId)
    return Contents.toolUse(callId, part.name, part.input)
  })
  return {
    role: "assistant",
    content: renamed.size === 0 ? reply.content : content.map((part) => signed(part, (id) => renamed.get(id) ?? id))
  }
}

/** The vendor's id of a call, or one of ours where that one names another call of the run: an answer is for one. */
const idOf = (given: string, index: number, view: View, used: Map<string, number>): string => {
  const id = unique(given, used)
  return isCounted(given) || view.isUsed(id) ? unique(`${view.turnId}.${index}`, used) : id
}

/** An id that only counts the calls of its reply comes back on the next turn: it names nothing. */
const isCounted = (id: string): boolean => /^(?:call_\d*)?$/.test(id)

/** A repeated native id gets `#2`, `#3` (DR-2). */
const unique = (id: string, used: Map<string, number>): string => {
  const count = (used.get(id) ?? 0) + 1
  used.set(id, count)
  return count === 1 ? id : unique(`${id}#${count}`, used)
}

// ---------------------------------------------------------------- blocks

const readBlocks = (reply: Reply, view: View, facts: Array<Fact>): Intent => {
  const { blocks } = reply
  const workflow = findPlan(blocks, view, facts)
  const refused = workflow.rejected === undefined ? undefined : InstructionBuilder.planRejected(workflow.rejected)
  const unclosed =
    reply.unclosed === undefined
      ? undefined
      : InstructionBuilder.ignored([reply.unclosed.type], "the block was never closed")
  for (const block of blocks) {
    if (block !== workflow.block && (block.type === "plan" || block.type === "json")) {
      facts.push({ type: block.type, content: block.content })
    }
  }
  if (workflow.plan !== undefined) {
    const others = blocks.filter((block) => block !== workflow.block)
    const passedOver = note(others, "a plan stands alone", facts)
    return {
      outcome: { type: "workflow", plan: workflow.plan, ...noted(passedOver, refused, unclosed) },
      calls: tasksOf(workflow.plan, view),
      facts
    }
  }
  const acts = blocks.filter((block) => block.type === "command" || view.isProtocol(block.type))
  // Acting comes before finishing: a model that does both has not seen its results yet.
  if (acts.length > 0) {
    const passed = blocks.filter((block) => block.type === "final" || hasNoEffect(block, view))
    const calls = acts.map((block, index) => callOf(block, index, view))
    const passedOver = note(passed, "only commands and protocol blocks ran", facts)
    const outcome: Outcome = { type: "tools", ...noted(passedOver, refused, unclosed) }
    return { outcome, calls: bounded(calls, view.limits), facts }
  }
  const final = blocks.find((block) => block.type === "final")
  const powerless = kinds(blocks.filter((block) => hasNoEffect(block, view)))
  if (final !== undefined) {
    if (powerless.length > 0) facts.push({ type: "blocks_ignored", kinds: powerless, reason: "written by the model" })
    return finished(final.content, "final", view, facts)
  }
  if (blocks.some((block) => block.type === "plan" || block.type === "json")) {
    facts.push({ type: "informational_only", kinds: kinds(blocks) })
    const corrective = joined(InstructionBuilder.informational(kinds(blocks)), refused, unclosed)
    return corrected(refused === undefined ? "informational" : "plan", corrective, facts)
  }
  if (reply.unclosed !== undefined) {
    facts.push({ type: "no_blocks_stall", prosePreview: preview(reply.text), kinds: [reply.unclosed.type] })
    return corrected("cut", InstructionBuilder.unclosed(reply.unclosed.type), facts)
  }
  if (view.correctsProse) {
    facts.push({ type: "no_blocks_stall", prosePreview: preview(reply.text), kinds: powerless })
    return corrected("stall", InstructionBuilder.stall(powerless), facts)
  }
  return finished(reply.text, "prose", view, facts)
}

/** The first valid plan of a root run; a refused one before it is told with its reason (BP-46, BP-47). */
const findPlan = (
  blocks: ReadonlyArray<Block.Block>,
  view: View,
  facts: Array<Fact>
): { readonly plan?: Plan.Plan; readonly block?: Block.Block; readonly rejected: string | undefined } => {
  let rejected: string | undefined
  for (const block of blocks) {
    if (block.type !== "plan") continue
    // Thinking aloud in a plan block is no failed workflow (W-34).
    if (Plan.isProse(block.content)) continue
    const plan = view.depth > 0 ? Result.fail(Plan.nested) : Plan.validate(block.content, view.limits)
    if (Result.isSuccess(plan)) return { plan: plan.success, block, rejected }
    facts.push({ type: "plan_rejected", reason: plan.failure.reason, raw: block.content })
    rejected ??= plan.failure.message
  }
  return { rejected }
}

/** Tasks are called in the order their results are told (BP-58). */
const tasksOf = (plan: Plan.Plan, view: View): ReadonlyArray<Call> => {
  const byId = new Map(plan.tasks.map((task) => [task.id, task]))
  return Plan.completionOrder(plan).flatMap((id): ReadonlyArray<Call> => {
    const task = byId.get(id)
    return task === undefined
      ? []
      : [
          {
            callId: ofTask(view.turnId, id),
            name: id,
            input: { input: task.input, dependsOn: task.dependsOn },
            kind: "task",
            review: "unreviewed"
          }
        ]
  })
}

const callOf = (block: Block.Block, index: number, view: View): Call => {
  const callId = `${view.turnId}.${index}`
  if (block.type !== "command") {
    const named = block.name === null ? {} : { blockName: block.name }
    return { callId, name: block.type, input: block.content, kind: "protocol", review: "unreviewed", ...named }
  }
  if (block.name === null) {
    const fault = Calls.error("MissingName", "Command block missing skill name")
    return { callId, name: null, input: block.content, kind: "skill", review: "unreviewed", fault }
  }
  const name = Block.strip(block.name)
  return name.startsWith("/")
    ? { callId, name: name, input: block.content, kind: "builtin", review: "unreviewed" }
    : { callId, name: name, input: view.parameters(name, block.content), kind: "skill", review: "unreviewed" }
}

// ---------------------------------------------------------------- helpers

const finished = (text: string, type: "final" | "prose", view: View, facts: Array<Fact>): Intent => {
  const detail = view.misfit(text)
  if (detail === undefined) return { outcome: { type, text }, calls: [], facts }
  facts.push({ type: "output_rejected", detail })
  return corrected("output", InstructionBuilder.output(detail), facts)
}

const corrected = (
  reason: Extract<Outcome, { type: "corrective" }>["reason"],
  corrective: string,
  facts: ReadonlyArray<Fact>
): Intent => ({ outcome: { type: "corrective", reason, corrective }, calls: [], facts })

/** Calls beyond the limit are answered, not run. Those far beyond it are not even made: each would take its time, too. */
const bounded = (calls: ReadonlyArray<Call>, { blocksPerReply: limit }: Limits): ReadonlyArray<Call> => {
  if (calls.length <= limit) return calls
  const fault = Calls.error("LimitExceeded", `Only ${limit} calls of one reply are run.`)
  return calls.slice(0, limit + 1_000).map((call, index) => (index < limit ? call : { ...call, fault }))
}

/** Result, error and media blocks come from the kernel only; unknown types mean nothing (BP-39, BP-82). */
const hasNoEffect = (block: Block.Block, view: View): boolean =>
  block.type === "result" || block.type === "error" || (!Block.isCoreType(block.type) && !view.isProtocol(block.type))

const note = (passed: ReadonlyArray<Block.Block>, reason: string, facts: Array<Fact>): string | undefined => {
  if (passed.length === 0) return undefined
  const ignored = kinds(passed)
  facts.push({ type: "blocks_ignored", kinds: ignored, reason })
  return InstructionBuilder.ignored(ignored, reason)
}

/** What a model is told of its reply besides the results. */
const noted = (...sentences: ReadonlyArray<string | undefined>): { readonly note?: string } => {
  const note = joined(...sentences)
  return note === "" ? {} : { note }
}

const joined = (...sentences: ReadonlyArray<string | undefined>): string =>
  sentences.filter((sentence) => sentence !== undefined).join(" ")

const kinds = (blocks: ReadonlyArray<Block.Block>): ReadonlyArray<string> => [
  ...new Set(blocks.map((block) => block.type))
]

/** The first 400 characters, in code points (BP-43). */
const preview = (text: string): string => {
  if (text.length <= 400) return text
  let end = 0
  for (let count = 0; count < 400 && end < text.length; count++) end += (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1
  return text.slice(0, end)
}
