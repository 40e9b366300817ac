/**
 * One turn, step by step: prepare, ask, read, dispatch, end (DR-4, BP-37).
 *
 * Each function takes a run at one phase and leaves it at a later one. Where a
 * phase has a hook that gates it, the hook is asked before the commit; where it
 * settles, after. A run that was stopped anywhere goes on at its phase, by the
 * same functions.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { KernelError } from "../../KernelError.ts"
import { EmptyReplies, LoopDetected, ProviderError } from "../../KernelError.ts"
import { type Prompt, simple } from "../../PromptPipeline.ts"
import type { ToolDefinition } from "../../Provider.ts"
import type { ModelArgs, Turn } from "../../RunState.ts"
import { promptLog, turnLog } from "../state/state.ts"
import { startCalls } from "./calls.ts"
import { commit, flush, isKept, send, tell } from "./commit.ts"
import { goOn } from "./goOn.ts"
import * as Guard from "./repetition.ts"
import { intent, type Intent, isEmpty, messageOf, type View } from "./intent.ts"
import { type Heard, hear } from "./modelCall.ts"
import { observed } from "../base/passedOver.ts"
import { commonPrefix } from "../base/prefix.ts"
import { openTurn, type Run } from "./run.ts"
import { ask, complete, hookArgs, obey, settle } from "./askHooks.ts"
import { freeze } from "../base/snapshot.ts"
import * as Tree from "./sharedBudget.ts"
import {
  canAct,
  definitions,
  grammarOf,
  isProtocol,
  misfit,
  outputSchema,
  parametersOf,
  visibleProtocols
} from "./permissions.ts"

// ---------------------------------------------------------------- the start

/** Opens the next turn, unless the run is at its limit (DR-20). */
export const startTurn = (run: Run): Effect.Effect<void, KernelError> => {
  const turn = turnLog(run.state).length + 1
  if (turn > run.agent.maxSteps) return complete(run, "max_turns", undefined, { maxTurns: run.agent.maxSteps })
  run.goesOn = false
  const turnId = `${run.state.runId}:t${turn}`
  const { steering } = run
  if (steering === undefined || !isSteered(run)) return commit(run, "phase", [{ type: "turn_started", turnId }])
  return Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(restore(Effect.andThen(flush(run), steering.look)), ({ messages, take }) => {
      const said = messages.length === 0 ? {} : { steering: messages }
      const revision = run.state.revision + 1
      const stored = Effect.andThen(commit(run, "phase", [{ type: "turn_started", turnId, ...said }]), flush(run))
      // What is said is taken once it is stored: until then it waits, whatever becomes of this run.
      return Effect.onExit(stored, (exit) => Effect.map(isKept(run, revision, exit), (kept) => kept && take()))
    })
  )
}

/** Whether somebody said something to this run. Its children are not spoken to. */
const isSteered = (run: Run): boolean => run.steering !== undefined && run.state.depth === 0 && run.steering.isWaiting()

/** Builds the prompt of the turn and commits what is new in it (AC-10). */
export const prepare = (run: Run): Effect.Effect<void, KernelError> =>
  settle(run, "onTurnStarted", run.hooks.onTurnStarted, {}, build)

const build = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, KernelError> {
  const { agent } = run
  // What is foreign may take its time, and others look at what happened until then.
  if (isForeign(run)) yield* flush(run)
  // Nobody is asked to sum up for a model that may not be asked any more.
  const used = Tree.exhausted(run.tree)
  if (used !== undefined) return yield* used
  const instructions = typeof agent.instructions === "string" ? agent.instructions : yield* agent.instructions
  const protocols = yield* visibleProtocols(run)
  const built = yield* run.pipeline.build({
    agent,
    instructions,
    state: run.state,
    model: run.model,
    provider: run.provider,
    canAct: canAct(run, protocols),
    protocols: protocols.length === 0 ? none : protocols.map((protocol) => protocol.name),
    tools: agent.dialect === "tools" ? yield* definitions(run) : none,
    outputSchema: outputSchema(agent),
    builder: run.builder,
    counter: run.counter,
    redactor: run.redactor,
    middleware: run.middleware
  })
  const { spent } = built
  if (spent !== undefined) {
    Tree.count(run.tree, Tree.spentOf(spent))
    // Its hook may have no prompt committed.
    run.unkept = { spent }
  }
  const hook = run.hooks.onTurnPrepared
  if (hook === undefined) return yield* commitPrompt(run, built, argsOf(built))
  const result = yield* ask(run, "onTurnPrepared", () =>
    hook(hookArgs(run, { prepared: { ...built, messages: built.messages ?? run.state.prompt } }))
  )
  if (result.control !== undefined && result.control.type !== "continue") return yield* obey(run, result.control)
  if (result.value === undefined) return yield* commitPrompt(run, built, argsOf(built))
  const { generation, messages, model, system } = result.value
  yield* commitPrompt(
    run,
    { ...built, system, messages },
    { ...argsOf(built), ...(model && { model }), ...(generation && { generation }) }
  )
})

/** Whether others' code has a part in the prompt: in its instructions, its sections, or the count of its tokens. */
const isForeign = ({ agent, counter, pipeline }: Run): boolean =>
  typeof agent.instructions !== "string" || pipeline !== simple || counter !== undefined

const none: ReadonlyArray<never> = []

const argsOf = ({ cacheBreakpoints, generation }: Prompt): ModelArgs | undefined =>
  (generation ?? cacheBreakpoints) && {
    ...(generation && { generation }),
    ...(cacheBreakpoints && { cacheBreakpoints })
  }

const commitPrompt = (run: Run, prompt: Prompt, args: ModelArgs | undefined): Effect.Effect<void, KernelError> => {
  const { messages, spent, system, tools } = prompt
  run.unkept = undefined
  const base = messages === undefined ? promptLog(run.state).length : commonPrefix(run.state.prompt, messages)
  const append = messages === undefined || base === messages.length ? none : messages.slice(base)
  return commit(run, "phase", [
    {
      type: "turn_prepared",
      model: args?.model?.id ?? run.model.id,
      dialect: run.agent.dialect,
      prompt: system === run.state.system ? { base, append } : { base, append, system },
      tools: tools.length === 0 ? none : tools.map((tool) => tool.name),
      ...(args && { args }),
      ...(spent && { spent })
    }
  ])
}

// ---------------------------------------------------------------- the model

/** Commits that the model is about to be asked, then asks it. */
export const startModel = (run: Run): Effect.Effect<void, KernelError> =>
  goOn(commit(run, "phase", [{ type: "model_started", attempt: 1 }]), () =>
    settle(run, "onModelStarted", run.hooks.onModelStarted, {}, askModel)
  )

/** Asks again what was asked when the run was cut off; the attempt goes up (DR-24). */
export const restartModel = Effect.fnUntraced(function* (run: Run) {
  yield* commit(run, "phase", [{ type: "model_restarted", attempt: openTurn(run).attempt + 1 }])
  const observer = run.hooks.onModelRestarted
  if (observer !== undefined) {
    yield* flush(run)
    yield* observed("onModelRestarted", () => observer(hookArgs(run, {})))
  }
  yield* askModel(run)
})

/** One model call: what it gave is committed even when the run is being stopped (DR-7, DR-21). */
const askModel = (run: Run): Effect.Effect<void, KernelError> => {
  const turn = openTurn(run)
  const names = new Set(turn.tools)
  return names.size === 0
    ? askWith(run, turn, none)
    : Effect.flatMap(definitions(run), (tools) =>
        askWith(
          run,
          turn,
          tools.filter(({ name }) => names.has(name))
        )
      )
}

const askWith = (run: Run, turn: Turn, tools: ReadonlyArray<ToolDefinition>): Effect.Effect<void, KernelError> =>
  Effect.uninterruptibleMask((restore) => {
    const asked = () =>
      run.agent.grammar
        ? Effect.flatMap(grammarOf(run), (grammar) => hear(run, turn, tools, grammar, restore))
        : hear(run, turn, tools, undefined, restore)
    // Who waits for leave has stored what it did.
    return goOn(send(run), () =>
      Effect.flatMap(Tree.withLeave(run.tree, run.state.depth, restore, asked), (heard) => answer(run, heard))
    )
  })

/** Reads what the reply means and commits it. */
const answer = (run: Run, heard: Heard): Effect.Effect<void, KernelError> => {
  const { costUsd, refused = refusal(heard), usage } = heard
  if (refused !== undefined) {
    if (usage !== null) run.unkept = { spent: { usage, costUsd } }
    return Effect.failCause(refused)
  }
  const decide = (acts: boolean) => decideOn(run, heard, acts)
  return run.agent.skills === undefined
    ? Effect.flatMap(visibleProtocols(run), (protocols) => decide(canAct(run, protocols)))
    : decide(true)
}

/** What the reply means, committed and told. */
const decideOn = (run: Run, heard: Heard, acts: boolean): Effect.Effect<void, KernelError> => {
  const { reply } = heard
  const view = viewOf(run, acts)
  const understood = intent(reply, view)
  const { maxRepeats } = run.agent
  const circle = maxRepeats === undefined ? undefined : Guard.circle(run.state, understood, reply.text, maxRepeats)
  const meaning = circle?.meaning ?? understood
  return goOn(commitAnswer(run, heard, meaning, view), (): Effect.Effect<void, KernelError> => {
    run.raw = heard.raw
    tellReply(run, heard, meaning)
    const overrun = Tree.isBounded(run.tree) ? Tree.overrun(run.tree) : undefined
    if (overrun !== undefined) return Effect.fail(overrun)
    return circle?.isStop === true
      ? Effect.fail(new LoopDetected({ runId: run.state.runId, repeats: circle.repeats }))
      : Effect.void
  })
}

const commitAnswer = (run: Run, heard: Heard, meaning: Intent, view: View) => {
  // What is journaled is what runs: a skill that changes its input changes nothing.
  for (const call of meaning.calls) freeze(call.input)
  return commit(run, "phase", [
    {
      type: "model_completed",
      message: messageOf(heard.reply, view),
      model: `${heard.call.provider.name}/${heard.call.request.model.id}`,
      usage: heard.usage,
      finishReason: heard.reply.finish?.reason ?? "unknown",
      latencyMs: heard.latencyMs,
      outcome: meaning.outcome,
      calls: meaning.calls,
      ...(heard.costUsd === 0 ? undefined : { costUsd: heard.costUsd })
    }
  ])
}

/** Why a reply must not pass for an answer: it was cut off, filtered, or failed. */
const refusal = ({ call, reply }: Heard): Cause.Cause<KernelError> | undefined => {
  if (reply.failure !== undefined) return Cause.fail(reply.failure)
  const refused = (reason: ProviderError["reason"], detail: string) =>
    Cause.fail(new ProviderError({ provider: call.provider.name, reason, detail }))
  switch (reply.finish?.reason) {
    case undefined:
      return refused("incomplete", "the reply ended too early")
    case "content-filter":
      return refused("content_filter", "the reply was withheld by a content filter")
    case "error":
      // Without a word of it the model may try again, as after any empty reply: it may have miswritten a call.
      return isEmpty(reply) ? undefined : refused("unknown", "the model failed")
  }
  return undefined
}

const viewOf = (run: Run, acts: boolean): View => {
  const turn = openTurn(run)
  return {
    turnId: turn.turnId,
    depth: run.state.depth,
    native: turn.dialect === "tools",
    // What such an agent says is its result whatever it is, as it always was; who sets `prose` wants an answer.
    takesEmpty: turn.dialect === "blocks" && run.agent.prose === "auto" && !acts,
    correctsProse: run.agent.prose === "corrective" || (run.agent.prose === "auto" && acts),
    limits: run.limits,
    isProtocol: (type) => isProtocol(run, type),
    isUsed: (id) => run.isUsed(id, turnLog(run.state)),
    parameters: (skill, text) => parametersOf(run, skill, text),
    misfit: (text) => misfit(run, text)
  }
}

const tellReply = (run: Run, { latencyMs, reply, usage }: Heard, meaning: Intent) => {
  if (reply.unclosed !== undefined) {
    const { content, name, type } = reply.unclosed
    tell(run, {
      type: "block_unclosed",
      blockType: type,
      name,
      content,
      finishReason: reply.finish?.reason ?? "unknown"
    })
  }
  tell(run, { type: "llm_response", content: reply.text, latencyMs, usage })
  for (const fact of meaning.facts) tell(run, fact)
}

/** After the answer: its hook, then its calls or the end of the turn. */
export const afterModel = (run: Run): Effect.Effect<void, KernelError> => {
  const hook = run.hooks.onModelCompleted
  const { raw } = run
  run.raw = none
  return settle(run, "onModelCompleted", hook, { raw }, (run) =>
    openTurn(run).pending.length > 0 ? startCalls(run) : endTurn(run)
  )
}

// ---------------------------------------------------------------- the end

/** After the batch: the end of the turn. */
export const afterCalls = (run: Run): Effect.Effect<void, KernelError> =>
  settle(run, "onToolCallsCompleted", run.hooks.onToolCallsCompleted, {}, endTurn)

const endTurn = (run: Run): Effect.Effect<void, KernelError> => {
  const { outcome, turnId } = openTurn(run)
  return goOn(commit(run, "phase", [{ type: "turn_completed", turnId }]), () => {
    if (outcome?.type === "final") tell(run, { type: "final", text: outcome.text })
    if (outcome?.type === "final" || outcome?.type === "prose") tell(run, { type: "result", text: outcome.text })
    return Effect.void
  })
}

/** Decides how it goes on (DR-20): the end, the limit, or the next turn. */
export const afterTurn = (run: Run): Effect.Effect<void, KernelError> =>
  settle(run, "onTurnCompleted", run.hooks.onTurnCompleted, {}, (run) => {
    const turn = turnLog(run.state).last()
    const done = turn !== undefined && turn.completed.length === 0 && turn.outcome?.type !== "corrective"
    // What was said in the last turn there may be is for no turn of this run: its answer is the answer.
    const isAsked = run.goesOn || (isSteered(run) && turnLog(run.state).length < run.agent.maxSteps)
    if (done && !isAsked) return complete(run, "model_done")
    const { emptyReplies, runId } = run.state
    if (emptyReplies === 0) return startTurn(run)
    if (emptyReplies > run.limits.emptyReplies) return Effect.fail(new EmptyReplies({ runId, count: emptyReplies }))
    // A model that says nothing is given a little longer each time.
    return Effect.andThen(
      Effect.andThen(flush(run), Effect.sleep(250 * 2 ** (emptyReplies - 1))),
      Effect.suspend(() => startTurn(run))
    )
  })
