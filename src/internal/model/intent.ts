/**
 * Decides what a reply means for the run. Pure.
 *
 * A plan takes precedence over calls, calls over a final answer, and a final answer over prose. Blocks that are ignored
 * are reported to the model.
 */

import * as Result from "effect/Result"
import * as Block from "../../Block.ts"
import * as BlockParser from "../../BlockParser.ts"
import * as Calls from "../../Call.ts"
import { type Call, taskRunId } from "../../Call.ts"
import * as Contents from "../../Content.ts"
import type { Content } from "../../Content.ts"
import type { Reply } from "../../Dialect.ts"
import * as InstructionBuilder from "../../InstructionBuilder.ts"
import type { Message } from "../../Message.ts"
import * as Plan from "../../Plan.ts"
import * as Bounds from "../../kit/bounds.ts"
import { isJsonObject } from "../../kit/json.ts"
import { signed } from "../words/ids.ts"
import type { Fact, Ignored, Intent, Meaning, ReplyRules } from "./meaning.ts"
import { calling, corrected, finished, shortened } from "./meaning.ts"

/** Decides what a complete or truncated reply means. */
export const intent = (reply: Reply, rules: ReplyRules): Intent => {
  const whole = rules.continues === "" ? reply : continued(reply, rules)
  const { ignored, ...meaning } = meaningOf(whole, rules)
  const parsed: Fact = { type: "blocks_parsed", blocks: whole.blocks, ...(ignored && { ignored }) }
  return {
    ...meaning,
    outcome: shortened(meaning.outcome, rules),
    facts: [parsed, ...meaning.facts],
    message: messageOf(reply, rules)
  }
}

/** Returns whether a reply has no text, no calls and no media. A blank text is none. */
export const isEmpty = (reply: Reply): boolean =>
  reply.text.trim() === "" && reply.calls.length === 0 && !reply.content.some(Contents.isMedia)

/** Returns a reply with the text that its vendor paused before it, read as one. */
const continued = (reply: Reply, { continues, limits, native }: ReplyRules): Reply => {
  const text = continues + reply.text
  if (native) return { ...reply, text }
  const { blocks, unclosed } = BlockParser.parse(text, limits)
  // A markup of other tools was read from the reply alone.
  const isBlocks = blocks.length > 0 || unclosed !== undefined
  return isBlocks ? { ...reply, text, blocks, unclosed } : { ...reply, text }
}

const meaningOf = (reply: Reply, rules: ReplyRules): Meaning => {
  const finishReason = reply.finish?.reason ?? "unknown"
  if (finishReason === "pause") return { outcome: { type: "pause" }, calls: [], facts: [] }
  // Only a reply that the model finished itself may act or answer.
  if (finishReason !== "stop" && finishReason !== "tool-calls") {
    const reason = finishReason === "error" ? "empty" : "cut"
    return corrected(reason, InstructionBuilder.cut(finishReason), [])
  }
  if (isEmpty(reply) && !rules.takesEmpty) return ofNothing(rules)
  if (!rules.native) return ofBlocks(reply, rules)
  return reply.calls.length > 0
    ? calling(
        { type: "tools" },
        nativeCalls(reply, rules).map((call) => placed(call, rules)),
        rules.limits,
        []
      )
    : finished(reply.text, "final", rules, [])
}

/** Corrects an empty reply. Where prose counts as a stall, an empty reply counts as one, too. */
const ofNothing = (rules: ReplyRules): Meaning => {
  if (rules.native || !rules.correctsProse) return corrected("empty", InstructionBuilder.emptyProse, [])
  const stall: Fact = { type: "no_blocks_stall", prosePreview: "", kinds: [] }
  return corrected("empty", InstructionBuilder.empty, [stall])
}

const ofBlocks = (reply: Reply, rules: ReplyRules): Meaning => {
  const limit = rules.limits.blocksPerReply
  const isCut = reply.blocks.length > limit
  const blocks = isCut ? reply.blocks.slice(0, limit) : reply.blocks
  const plans = findPlan(blocks, rules)
  const { facts } = plans
  const refused = plans.rejected && InstructionBuilder.planRejected(plans.rejected)
  const isNeverClosed =
    reply.unclosed && InstructionBuilder.ignored([reply.unclosed.type], "the block was never closed")
  const isActing = (block: Block.Block): boolean => block.type === "command" || rules.isProtocol(block.type)
  // Each call beyond the limit gets an error result.
  const isAnswered = reply.blocks.length < limit + Bounds.blocksBeyond && reply.blocks.slice(limit).every(isActing)
  const open = isCut && !isAnswered ? InstructionBuilder.tooManyBlocks(limit) : isNeverClosed
  if (plans.plan !== undefined) {
    const ignored = ignoring(
      blocks.filter((block) => block !== plans.block),
      "a plan stands alone"
    )
    const note = noted(ignoredNote(ignored), refused, open)
    const outcome = { type: "workflow", plan: plans.plan, ...note } as const
    return { outcome, calls: tasksOf(plans.plan, rules), facts, ...(ignored && { ignored }) }
  }
  const acts = reply.blocks.filter(isActing)
  const powerless = blocks.filter((block) => hasNoEffect(block, rules))
  const final = blocks.find((block) => block.type === "final")
  // A final answer beside calls was written before the model saw their results.
  if (acts.length > 0) {
    const ignored = ignoring(
      blocks.filter((block) => block.type === "final" || hasNoEffect(block, rules)),
      "only commands and protocol blocks ran"
    )
    const calls = acts.map((block, index) => placed(callOf(block, index, rules), rules))
    const outcome = { type: "tools", ...noted(ignoredNote(ignored), refused, open) } as const
    return { ...calling(outcome, calls, rules.limits, facts), ...(ignored && { ignored }) }
  }
  if (isCut) return corrected("cut", InstructionBuilder.tooManyBlocks(limit), facts)
  if (final !== undefined) {
    const ignored = ignoring(powerless, "written by the model")
    return { ...finished(final.content, "final", rules, facts), ...(ignored && { ignored }) }
  }
  if (blocks.some((block) => block.type === "plan" || block.type === "json")) {
    const corrective = joined(InstructionBuilder.informational(kindsOf(blocks)), refused, open)
    const stalled: Fact = { type: "informational_only", kinds: kindsOf(blocks) }
    return corrected(refused === undefined ? "informational" : "plan", corrective, [...facts, stalled])
  }
  const stall = (kinds: ReadonlyArray<string>): Fact => ({
    type: "no_blocks_stall",
    prosePreview: preview(reply.text),
    kinds
  })
  if (reply.unclosed !== undefined) {
    return corrected("cut", InstructionBuilder.unclosed(reply.unclosed.type), [...facts, stall([reply.unclosed.type])])
  }
  // Media count as an answer.
  const isProse = !rules.correctsProse || reply.content.some(Contents.isMedia)
  return !isProse
    ? corrected("stall", InstructionBuilder.stall(kindsOf(powerless)), [...facts, stall(kindsOf(powerless))])
    : finished(reply.text, "prose", rules, facts)
}

// ---------------------------------------------------------------- blocks and calls

/** Plans found in a reply. */
interface FoundPlan {
  readonly plan?: Plan.Plan
  readonly block?: Block.Block
  /** Why an earlier plan was rejected. */
  readonly rejected: string | undefined
  /** Events about rejected plans, then about plan and json blocks without effect. */
  readonly facts: ReadonlyArray<Fact>
}

/** Finds the first valid plan of a root run, and the reason why an earlier one was rejected. */
const findPlan = (blocks: Blocks, rules: ReplyRules): FoundPlan => {
  const refused: Array<Fact> = []
  let rejected: string | undefined
  for (const block of blocks) {
    // A plan block with prose is thinking aloud, not a failed workflow.
    if (block.type !== "plan" || Plan.isProse(block.content)) continue
    const plan = rules.depth > 0 ? Result.fail(Plan.nested) : Plan.validate(block.content, rules.limits, rules.agents)
    if (Result.isSuccess(plan)) {
      return { plan: plan.success, block, rejected, facts: [...refused, ...informational(blocks, block)] }
    }
    refused.push({ type: "plan_rejected", reason: plan.failure.reason, raw: block.content })
    rejected ??= plan.failure.message
  }
  return { rejected, facts: [...refused, ...informational(blocks, undefined)] }
}

/** Returns the calls of a plan's tasks, in the order of their results. */
const tasksOf = (plan: Plan.Plan, { turnId }: ReplyRules): ReadonlyArray<Call> => {
  const byId = new Map(plan.tasks.map((task) => [task.id, task]))
  return Plan.completionOrder(plan).flatMap((name): ReadonlyArray<Call> => {
    const task = byId.get(name)
    if (task === undefined) return []
    const input = { input: task.input, dependsOn: task.dependsOn, ...(task.agent && { agent: task.agent }) }
    return [{ callId: taskRunId(turnId, name), name, input, kind: "task", review: "unreviewed" }]
  })
}

/** Returns the call of a command or protocol block. */
const callOf = (block: Block.Block, index: number, rules: ReplyRules): Call => {
  const callId = `${rules.turnId}.${index}`
  const review = "unreviewed"
  if (block.type !== "command") {
    const named = block.name === null ? {} : { blockName: block.name }
    return { callId, name: block.type, input: block.content, kind: "protocol", review, ...named }
  }
  if (block.name === null) {
    const fault = Calls.error("MissingName", "Command block missing skill name")
    return { callId, name: null, input: block.content, kind: "skill", review, fault }
  }
  const name = Block.strip(block.name)
  const kind = rules.kindOf(name)
  return {
    callId,
    name,
    input: kind === "builtin" ? block.content : rules.parameters(name, block.content),
    kind,
    review
  }
}

/** Takes the parameter `background` from the input of a call that may run in the background. */
const placed = (call: Call, rules: ReplyRules): Call => {
  if (!isJsonObject(call.input) || !rules.mayBackground(call.name ?? "")) return call
  const { background, ...input } = call.input
  return background === true ? { ...call, input, background } : background === false ? { ...call, input } : call
}

/** Returns whether a block has no effect: an unknown type, or a result or error, which only the kernel writes. */
const hasNoEffect = ({ type }: Block.Block, rules: ReplyRules): boolean =>
  type === "result" || type === "error" || (!Block.isCoreType(type) && !rules.isProtocol(type))

/** Returns the distinct types of blocks. */
const kindsOf = (blocks: Blocks): ReadonlyArray<string> => [...new Set(blocks.map((block) => block.type))]

/** Returns the blocks to ignore for a reason, or undefined without blocks. */
const ignoring = (blocks: Blocks, reason: string): Ignored | undefined =>
  blocks.length === 0 ? undefined : { blocks, reason }

/** Returns the sentence about ignored blocks for the model. */
const ignoredNote = (ignored: Ignored | undefined): string | undefined =>
  ignored && InstructionBuilder.ignored(kindsOf(ignored.blocks), ignored.reason)

/** Joins sentences into a note that the model gets beside its results. Empty without sentences. */
const noted = (...sentences: ReadonlyArray<string | undefined>): { readonly note?: string } => {
  const note = joined(...sentences)
  return note === "" ? {} : { note }
}

const joined = (...sentences: ReadonlyArray<string | undefined>): string =>
  sentences.filter((sentence) => sentence !== undefined).join(" ")

/** Returns the first 400 code points of a text. */
const preview = (text: string): string => {
  if (text.length <= 400) return text
  let end = 0
  for (let count = 0; count < 400 && end < text.length; count++) end += (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1
  return text.slice(0, end)
}

/** Returns the native calls of a reply. A call whose input is not an object gets an error instead of running. */
const nativeCalls = (reply: Reply, rules: ReplyRules): ReadonlyArray<Call> => {
  const used = new Map<string, number>()
  return reply.calls.map(({ id, name, params }, index): Call => {
    const callId = idOf(id, index, rules, used)
    const kind = rules.isProtocol(name) ? "protocol" : rules.kindOf(name)
    if (isJsonObject(params)) return { callId, name, input: params, kind, review: "unreviewed" }
    const fault = Calls.error("InvalidArguments", `The arguments of '${name}' are not a JSON object.`)
    return { callId, name, input: {}, kind, review: "unreviewed", fault }
  })
}

/** Returns the assistant message of a reply. Its native calls have the ids that their results will have. */
const messageOf = (reply: Reply, rules: ReplyRules): Message => {
  if (!reply.content.some(({ type }) => type === "tool_use")) return { role: "assistant", content: reply.content }
  const renamed = new Map<string, string>()
  const used = new Map<string, number>()
  let index = 0
  const content = reply.content.map((part): Content => {
    if (part.type !== "tool_use") return part
    // Calls of a truncated reply or far beyond the limit never run, but each needs a unique id for its result.
    const callId = idOf(part.callId, index++, rules, used)
    if (callId === part.callId) return part
    if (!renamed.has(part.callId)) renamed.set(part.callId, callId)
    return Contents.toolUse(callId, part.name, part.input)
  })
  const isSame = renamed.size === 0
  return {
    role: "assistant",
    content: isSame ? reply.content : content.map((part) => signed(part, (id) => renamed.get(id) ?? id))
  }
}

type Blocks = ReadonlyArray<Block.Block>

const informational = (blocks: Blocks, plan: Block.Block | undefined): ReadonlyArray<Fact> =>
  blocks.flatMap(({ content, type }, index): ReadonlyArray<Fact> =>
    blocks[index] !== plan && (type === "plan" || type === "json") ? [{ type, content }] : []
  )

/** Returns the vendor's id of a call, or one of ours if another call of the run has that id. */
const idOf = (given: string, index: number, rules: ReplyRules, used: Map<string, number>): string => {
  const own = `${rules.turnId}.${index}`
  // Answers refer to calls of the whole tree, so calls of a child need ids that are unique in the tree.
  if (rules.depth > 0) return unique(own, used)
  const id = unique(given, used)
  return isCounted(given) || rules.isUsed(id) ? unique(own, used) : id
}

/** Returns whether an id only counts the calls of its reply, so that the next turn would repeat it. */
const isCounted = (id: string): boolean => /^(?:call_\d*)?$/.test(id)

/** Adds `#2`, `#3` to an id that repeats. */
const unique = (id: string, used: Map<string, number>): string => {
  const count = (used.get(id) ?? 0) + 1
  used.set(id, count)
  return count === 1 ? id : unique(`${id}#${count}`, used)
}
