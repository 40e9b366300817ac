/**
 * Converts the blocks and native calls of a reply into plans, calls and notes.
 */

import * as Result from "effect/Result"
import * as Block from "../../Block.ts"
import * as Calls from "../../Call.ts"
import type { Call } from "../../Call.ts"
import * as Contents from "../../Content.ts"
import type { Content } from "../../Content.ts"
import type { Reply } from "../../Dialect.ts"
import * as InstructionBuilder from "../../InstructionBuilder.ts"
import type { Message } from "../../Message.ts"
import * as Plan from "../../Plan.ts"
import { isJsonObject } from "../../kit/json.ts"
import { signed } from "../words/ids.ts"
import { taskRunId } from "../../Call.ts"
import type { Fact, Ignored, ReplyRules } from "./meaning.ts"

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
export const findPlan = (blocks: Blocks, rules: ReplyRules): FoundPlan => {
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
export const tasksOf = (plan: Plan.Plan, { turnId }: ReplyRules): ReadonlyArray<Call> => {
  const byId = new Map(plan.tasks.map((task) => [task.id, task]))
  return Plan.completionOrder(plan).flatMap((name): ReadonlyArray<Call> => {
    const task = byId.get(name)
    if (task === undefined) return []
    const input = { input: task.input, dependsOn: task.dependsOn, ...(task.agent && { agent: task.agent }) }
    return [{ callId: taskRunId(turnId, name), name, input, kind: "task", review: "unreviewed" }]
  })
}

/** Returns the call of a command or protocol block. */
export const callOf = (block: Block.Block, index: number, rules: ReplyRules): Call => {
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

/** Returns whether a block has no effect: an unknown type, or a result or error, which only the kernel writes. */
export const hasNoEffect = ({ type }: Block.Block, rules: ReplyRules): boolean =>
  type === "result" || type === "error" || (!Block.isCoreType(type) && !rules.isProtocol(type))

/** Returns the distinct types of blocks. */
export const kinds = (blocks: Blocks): ReadonlyArray<string> => [...new Set(blocks.map((block) => block.type))]

/** Returns the blocks to ignore for a reason, or undefined without blocks. */
export const ignored = (blocks: Blocks, reason: string): Ignored | undefined =>
  blocks.length === 0 ? undefined : { blocks, reason }

/** Returns the sentence about ignored blocks for the model. */
export const ignoredNote = (ignored: Ignored | undefined): string | undefined =>
  ignored && InstructionBuilder.ignored(kinds(ignored.blocks), ignored.reason)

/** Joins sentences into a note that the model gets beside its results. Empty without sentences. */
export const noted = (...sentences: ReadonlyArray<string | undefined>): { readonly note?: string } => {
  const note = joined(...sentences)
  return note === "" ? {} : { note }
}

export const joined = (...sentences: ReadonlyArray<string | undefined>): string =>
  sentences.filter((sentence) => sentence !== undefined).join(" ")

/** Returns the first 400 code points of a text. */
export const preview = (text: string): string => {
  if (text.length <= 400) return text
  let end = 0
  for (let count = 0; count < 400 && end < text.length; count++) end += (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1
  return text.slice(0, end)
}

/** Returns the native calls of a reply. A call whose input is not an object gets an error instead of running. */
export const nativeCalls = (reply: Reply, rules: ReplyRules): ReadonlyArray<Call> => {
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
export const messageOf = (reply: Reply, rules: ReplyRules): Message => {
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
