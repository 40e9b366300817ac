/**
 * Decides what a reply means for the run. Pure.
 *
 * A plan takes precedence over calls, calls over a final answer, and a final answer over prose. Blocks that are ignored
 * are reported to the model.
 */

import type { Block } from "../../Block.ts"
import * as Contents from "../../Content.ts"
import type { Reply } from "../../Dialect.ts"
import * as InstructionBuilder from "../../InstructionBuilder.ts"
import * as Bounds from "../../kit/bounds.ts"
import type { Fact, Intent, Meaning, ReplyRules } from "./meaning.ts"
import { calling, corrected, finished, shortened } from "./meaning.ts"
import * as Blocks from "./replyBlocks.ts"

/** Decides what a complete or truncated reply means. */
export const intent = (reply: Reply, rules: ReplyRules): Intent => {
  const { ignored, ...meaning } = meaningOf(reply, rules)
  const parsed: Fact = { type: "blocks_parsed", blocks: reply.blocks, ...(ignored && { ignored }) }
  return {
    ...meaning,
    outcome: shortened(meaning.outcome, rules),
    facts: [parsed, ...meaning.facts],
    message: Blocks.messageOf(reply, rules)
  }
}

/** Returns whether a reply has no text, no calls and no media. */
export const isEmpty = (reply: Reply): boolean =>
  reply.text === "" && reply.calls.length === 0 && !reply.content.some(Contents.isMedia)

const meaningOf = (reply: Reply, rules: ReplyRules): Meaning => {
  const finishReason = reply.finish?.reason ?? "unknown"
  // Only a reply that the model finished itself may act or answer.
  if (finishReason !== "stop" && finishReason !== "tool-calls") {
    const reason = finishReason === "error" ? "empty" : "cut"
    return corrected(reason, InstructionBuilder.cut(finishReason), [])
  }
  if (isEmpty(reply) && !rules.takesEmpty) return ofNothing(rules)
  if (!rules.native) return ofBlocks(reply, rules)
  return reply.calls.length > 0
    ? calling({ type: "tools" }, Blocks.nativeCalls(reply, rules), rules.limits, [])
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
  const plans = Blocks.findPlan(blocks, rules)
  const { facts } = plans
  const refused = plans.rejected && InstructionBuilder.planRejected(plans.rejected)
  const isNeverClosed =
    reply.unclosed && InstructionBuilder.ignored([reply.unclosed.type], "the block was never closed")
  const isActing = (block: Block): boolean => block.type === "command" || rules.isProtocol(block.type)
  // Each call beyond the limit gets an error result.
  const isAnswered = reply.blocks.length < limit + Bounds.blocksBeyond && reply.blocks.slice(limit).every(isActing)
  const open = isCut && !isAnswered ? InstructionBuilder.tooManyBlocks(limit) : isNeverClosed
  if (plans.plan !== undefined) {
    const ignored = Blocks.ignored(
      blocks.filter((block) => block !== plans.block),
      "a plan stands alone"
    )
    const note = Blocks.noted(Blocks.ignoredNote(ignored), refused, open)
    const outcome = { type: "workflow", plan: plans.plan, ...note } as const
    return { outcome, calls: Blocks.tasksOf(plans.plan, rules), facts, ...(ignored && { ignored }) }
  }
  const acts = reply.blocks.filter(isActing)
  const powerless = blocks.filter((block) => Blocks.hasNoEffect(block, rules))
  const final = blocks.find((block) => block.type === "final")
  // A final answer beside calls was written before the model saw their results.
  if (acts.length > 0) {
    const ignored = Blocks.ignored(
      blocks.filter((block) => block.type === "final" || Blocks.hasNoEffect(block, rules)),
      "only commands and protocol blocks ran"
    )
    const calls = acts.map((block, index) => Blocks.callOf(block, index, rules))
    const outcome = { type: "tools", ...Blocks.noted(Blocks.ignoredNote(ignored), refused, open) } as const
    return { ...calling(outcome, calls, rules.limits, facts), ...(ignored && { ignored }) }
  }
  if (isCut) return corrected("cut", InstructionBuilder.tooManyBlocks(limit), facts)
  if (final !== undefined) {
    const ignored = Blocks.ignored(powerless, "written by the model")
    return { ...finished(final.content, "final", rules, facts), ...(ignored && { ignored }) }
  }
  if (blocks.some((block) => block.type === "plan" || block.type === "json")) {
    const corrective = Blocks.joined(InstructionBuilder.informational(Blocks.kinds(blocks)), refused, open)
    const stalled: Fact = { type: "informational_only", kinds: Blocks.kinds(blocks) }
    return corrected(refused === undefined ? "informational" : "plan", corrective, [...facts, stalled])
  }
  const stall = (kinds: ReadonlyArray<string>): Fact => ({
    type: "no_blocks_stall",
    prosePreview: Blocks.preview(reply.text),
    kinds
  })
  if (reply.unclosed !== undefined) {
    return corrected("cut", InstructionBuilder.unclosed(reply.unclosed.type), [...facts, stall([reply.unclosed.type])])
  }
  // Media count as an answer.
  const isProse = !rules.correctsProse || reply.content.some(Contents.isMedia)
  return !isProse
    ? corrected("stall", InstructionBuilder.stall(Blocks.kinds(powerless)), [...facts, stall(Blocks.kinds(powerless))])
    : finished(reply.text, "prose", rules, facts)
}
