/**
 * One turn, step by step: prepare, ask, read, dispatch, end (DR-4, BP-37).
 *
 * Each function takes a run at one phase and leaves it at a later one. Where a
 * phase has a hook that gates it, the hook is asked before the commit; where it
 * settles, after. A run that was stopped anywhere goes on at its phase, by the
 * same functions.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import type * as BlockParser from "../BlockParser.ts"
import * as Dialects from "../Dialect.ts"
import * as Generations from "../Generation.ts"
import type { KernelError } from "../KernelError.ts"
import { EmptyReplies, ProviderError } from "../KernelError.ts"
import type { Message } from "../Message.ts"
import * as Messages from "../Message.ts"
import type { ModelCall, ModelStream } from "../Middleware.ts"
import type { Prompt } from "../PromptPipeline.ts"
import type { Request, ToolDefinition } from "../Provider.ts"
import type { ModelArgs, Turn } from "../RunState.ts"
import type { StreamPart } from "../StreamPart.ts"
import * as Usage from "../Usage.ts"
import { promptLog, turnLog } from "./advance.ts"
import { startCalls } from "./batch.ts"
import { intent, type Intent } from "./intent.ts"
import { ask, commit, complete, hookArgs, now, obey, openTurn, type Run, settle, stepOf, tell } from "./run.ts"
import * as Tree from "./tree.ts"
import { canAct, definitions, isProtocol, misfit, outputSchema, parametersOf, visibleProtocols } from "./view.ts"

// ---------------------------------------------------------------- the start

/** Opens the next turn, unless the run is at its limit (DR-20). */
export const startTurn = (run: Run): Effect.Effect<void, KernelError> => {
  const turn = turnLog(run.state).length + 1
  if (turn > limitOf(run)) return complete(run, "max_turns", undefined, { maxTurns: limitOf(run) })
  run.goesOn = false
  return commit(run, "phase", [{ type: "turn_started", turnId: `${run.state.runId}:t${turn}` }])
}

const limitOf = (run: Run): number => Math.min(run.agent.maxSteps, run.agent.budget.maxTurns ?? Infinity)

/** Builds the prompt of the turn and commits what is new in it (AC-10). */
export const prepare = (run: Run): Effect.Effect<void, KernelError> =>
  settle(run, "onTurnStarted", run.hooks.onTurnStarted, build)

const build = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, KernelError> {
  const { agent } = run
  const instructions = typeof agent.instructions === "string" ? agent.instructions : yield* agent.instructions
  const protocols = yield* visibleProtocols(run)
  const built = yield* run.pipeline.build({
    agent,
    instructions,
    state: run.state,
    model: run.model,
    canAct: canAct(run, protocols),
    protocols: protocols.length === 0 ? none : protocols.map((protocol) => protocol.name),
    tools: agent.dialect === "tools" ? yield* definitions(run) : none,
    outputSchema: outputSchema(agent),
    builder: run.builder
  })
  if (run.hooks.onTurnPrepared === undefined) return yield* commitPrompt(run, built, argsOf(built))
  const result = yield* ask(
    run,
    "onTurnPrepared",
    run.hooks.onTurnPrepared({
      ...hookArgs(run),
      prepared: { ...built, messages: built.messages ?? run.state.prompt }
    })
  )
  if (result.control !== undefined && result.control.type !== "continue") return yield* obey(run, result.control)
  if (result.value === undefined) return yield* commitPrompt(run, built, argsOf(built))
  const { generation, messages, model, system } = result.value
  const changes = { ...(model === undefined ? {} : { model }), ...(generation === undefined ? {} : { generation }) }
  yield* commitPrompt(run, { ...built, system, messages }, { ...argsOf(built), ...changes })
})

const none: ReadonlyArray<never> = []

const argsOf = (built: Prompt): ModelArgs | undefined =>
  built.generation === undefined && built.cacheBreakpoints === undefined
    ? undefined
    : {
        ...(built.generation === undefined ? {} : { generation: built.generation }),
        ...(built.cacheBreakpoints === undefined ? {} : { cacheBreakpoints: built.cacheBreakpoints })
      }

const commitPrompt = (run: Run, prompt: Prompt, args: ModelArgs | undefined): Effect.Effect<void, KernelError> => {
  const { messages, system, tools } = prompt
  const base = messages === undefined ? promptLog(run.state).length : commonPrefix(run.state.prompt, messages)
  const append = messages === undefined || base === messages.length ? none : messages.slice(base)
  return commit(run, "phase", [
    {
      type: "turn_prepared",
      model: args?.model?.id ?? run.model.id,
      dialect: run.agent.dialect,
      prompt: system === run.state.system ? { base, append } : { base, append, system },
      tools: tools.length === 0 ? none : tools.map((tool) => tool.name),
      ...(args === undefined ? {} : { args })
    }
  ])
}

/** Messages are shared values: the same object is the same message. */
const commonPrefix = (before: ReadonlyArray<Message>, after: ReadonlyArray<Message>): number => {
  if (before === after) return before.length
  const end = Math.min(before.length, after.length)
  let index = 0
  while (index < end && before[index] === after[index]) index++
  return index
}

// ---------------------------------------------------------------- the model

/** Commits that the model is about to be asked, then asks it. */
export const startModel = (run: Run): Effect.Effect<void, KernelError> =>
  Effect.flatMap(commit(run, "phase", [{ type: "model_started", attempt: 1 }]), () =>
    settle(run, "onModelStarted", run.hooks.onModelStarted, askModel)
  )

/** Asks again what was asked when the run was cut off; the attempt goes up (DR-24). */
export const restartModel = Effect.fnUntraced(function* (run: Run) {
  yield* commit(run, "phase", [{ type: "model_restarted", attempt: openTurn(run).attempt + 1 }])
  const observer = run.hooks.onModelRestarted
  if (observer !== undefined) {
    yield* observer(hookArgs(run)).pipe(
      Effect.catchCause((cause) => Effect.logWarning("onModelRestarted failed", cause))
    )
  }
  yield* askModel(run)
})

/**
 * One model call: what it gave is committed even when the run is being stopped (DR-7, DR-21).
 *
 * A reply is in hand from its finish part on, not from the end of its connection.
 */
const askModel = (run: Run): Effect.Effect<void, KernelError> => {
  const turn = openTurn(run)
  if (turn.tools.length === 0) return askWith(run, turn, none)
  return Effect.flatMap(definitions(run), (tools) =>
    askWith(
      run,
      turn,
      tools.filter((tool) => turn.tools.includes(tool.name))
    )
  )
}

const askWith = (run: Run, turn: Turn, tools: ReadonlyArray<ToolDefinition>): Effect.Effect<void, KernelError> =>
  Effect.uninterruptibleMask((restore) =>
    Tree.isBounded(run.tree)
      ? Effect.andThen(Tree.reserve(run.tree, run.state.depth, restore), call(run, turn, tools, restore))
      : call(run, turn, tools, restore)
  )

const call = (
  run: Run,
  turn: Turn,
  tools: ReadonlyArray<ToolDefinition>,
  restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
): Effect.Effect<void, KernelError> =>
  Effect.suspend(() => {
    const call = modelCall(run, turn, tools)
    tell(run, { type: "messages_sent", messages: call.request.messages })
    const started = now(run)
    const origin = { provider: call.provider.name, model: call.request.model.id }
    const reader = Dialects.of(turn.dialect).reader(listener(run, turn), run.limits, origin)
    const heard: Hearing = { raw: [], first: undefined }
    const reading = traced(run, call, reader, heard, read(run, turn, call, reader, heard))
    return Effect.flatMap(Effect.exit(restore(reading)), (exit): Effect.Effect<void, KernelError> => {
      const reply = reader.end()
      if (Exit.isFailure(exit) && !(Cause.hasInterruptsOnly(exit.cause) && reply.finish !== undefined)) {
        // A call that failed gave nothing to count, but it gives its leave back.
        if (Tree.isBounded(run.tree)) Tree.settle(run.tree, run.state.depth, undefined)
        return Effect.failCause(exit.cause)
      }
      return answer(run, { reply, call, latencyMs: now(run) - started, raw: heard.raw })
    })
  })

/** The span of a model call, where somebody watches. */
const traced = (
  run: Run,
  call: ModelCall,
  reader: Dialects.Reader,
  heard: Hearing,
  reading: Effect.Effect<void, KernelError>
): Effect.Effect<void, KernelError> => {
  if (run.telemetry === undefined) return reading
  const { generation, messages, model } = call.request
  const { rootRunId, runId, step } = call
  const facts = {
    provider: call.provider.name,
    model: model.id,
    generation,
    runId,
    rootRunId,
    step,
    input: () => messages
  }
  const started = now(run)
  return run.telemetry.chat(reading, facts, () => {
    const { content, finish } = reader.end()
    const usage = finish === undefined ? null : (Usage.fromAi(finish.usage) ?? null)
    return {
      usage,
      ...(finish === undefined ? {} : { finishReason: finish.reason }),
      firstChunkMs: heard.first === undefined ? undefined : heard.first - started,
      costUsd: Tree.costOf(usage, model.price),
      output: () => ({ role: "assistant", content })
    }
  })
}

/** What is noted while a reply comes in. */
interface Hearing {
  readonly raw: Array<StreamPart>
  /** When its first part came. */
  first: number | undefined
}

interface Heard {
  readonly reply: Dialects.Reply
  readonly call: ModelCall
  readonly latencyMs: number
  readonly raw: ReadonlyArray<StreamPart>
}

/** Streams the reply through the dialect, telling as it goes. */
const read = (
  run: Run,
  turn: Turn,
  call: ModelCall,
  reader: Dialects.Reader,
  heard: Hearing
): Effect.Effect<void, KernelError> => {
  const keep = run.hooks.onModelCompleted !== undefined
  const observe = run.hooks.onStreamPart
  return Stream.runForEachArray(throughMiddleware(run, call), (parts) =>
    Effect.suspend(() => {
      heard.first ??= now(run)
      if (keep) for (const part of parts) heard.raw.push(part)
      if (run.parts) tellParts(run, turn, parts)
      const broken = reader.push(parts)
      if (broken !== undefined) return Effect.fail(broken)
      if (observe !== undefined) {
        return Effect.forEach(parts, observe, { discard: true }).pipe(
          Effect.catchCause((cause) => Effect.logWarning("onStreamPart failed", cause))
        )
      }
      // A consumer that is there but has had no chance to read must not lose anything.
      return run.isFull() ? Effect.yieldNow : Effect.void
    })
  )
}

const modelCall = (run: Run, turn: Turn, tools: ReadonlyArray<ToolDefinition>): ModelCall => {
  const { agent, state } = run
  const system: ReadonlyArray<Message> = state.system === null ? [] : [Messages.system(state.system)]
  const model = turn.args?.model ?? run.model
  const generation = Generations.merge(agent.generation, turn.args?.generation ?? Generations.empty)
  const breakpoints = turn.args?.cacheBreakpoints
  const request: Request = {
    model,
    messages: promptLog(state).after(system),
    tools,
    generation,
    media: run.media,
    ...(breakpoints === undefined ? {} : { cacheBreakpoints: breakpoints.map((index) => index + system.length) })
  }
  return { runId: state.runId, rootRunId: state.rootRunId, step: stepOf(state), provider: run.provider, request }
}

/** First middleware outermost; its own failures are typed before they reach the run (DR-23). */
const throughMiddleware = (run: Run, call: ModelCall): ModelStream => {
  let next = (call: ModelCall): ModelStream => call.provider.stream(call.request)
  for (const { callModel } of run.middleware.toReversed()) {
    if (callModel === undefined) continue
    const inner = next
    next = (call) => callModel(call, inner)
  }
  return next(call)
}

const listener = (run: Run, turn: Turn): Dialects.Listener => {
  const { depth, rootRunId, runId, taskId } = run.state
  const step = turn.turn - 1
  const block = (part: BlockParser.Part) => {
    const at = now(run)
    // The two events of every token are written out: they are the hot path.
    if (part.type === "text_chunk") {
      run.tell({ type: "text_chunk", runId, rootRunId, step, depth, taskId, at, text: part.text })
    } else if (part.type === "block_content") {
      run.tell({ type: "block_content", runId, rootRunId, step, depth, taskId, at, text: part.text })
    } else if (part.type !== "block_unclosed") {
      run.tell({ ...part, runId, rootRunId, step, depth, taskId, at })
    }
  }
  const part = run.parts ? () => {} : (part: StreamPart) => tellParts(run, turn, [part])
  return { block, part }
}

const tellParts = (run: Run, turn: Turn, parts: ReadonlyArray<StreamPart>) => {
  for (const part of parts) {
    tell(run, { type: "stream_part", turnId: turn.turnId, turn: turn.turn, attempt: turn.attempt, part })
  }
}

/** Reads what the reply means and commits it. */
const answer = (run: Run, heard: Heard): Effect.Effect<void, KernelError> => {
  const { call, reply } = heard
  const usage = reply.finish === undefined ? null : (Usage.fromAi(reply.finish.usage) ?? null)
  const costUsd = Tree.costOf(usage, call.request.model.price)
  const bounded = Tree.isBounded(run.tree)
  if (bounded) Tree.settle(run.tree, run.state.depth, { tokens: Usage.total(usage ?? Usage.zero), costUsd })
  const refused = refusal(call, reply)
  if (refused !== undefined) return Effect.fail(refused)
  return Effect.flatMap(visibleProtocols(run), (protocols) => {
    const meaning = meaningOf(run, reply, canAct(run, protocols))
    return Effect.flatMap(commitAnswer(run, heard, usage, costUsd, meaning), () => {
      run.raw = heard.raw
      tellReply(run, heard, usage, meaning)
      const overrun = bounded ? Tree.overrun(run.tree) : undefined
      return overrun === undefined ? Effect.void : Effect.fail(overrun)
    })
  })
}

const commitAnswer = (run: Run, heard: Heard, usage: Usage.Usage | null, costUsd: number, meaning: Intent) =>
  commit(run, "phase", [
    {
      type: "model_completed",
      message: { role: "assistant", content: heard.reply.content },
      model: `${heard.call.provider.name}/${heard.call.request.model.id}`,
      usage,
      ...(costUsd === 0 ? {} : { costUsd }),
      finishReason: heard.reply.finish?.reason ?? "unknown",
      latencyMs: heard.latencyMs,
      outcome: meaning.outcome,
      calls: meaning.calls
    }
  ])

/** A reply that must not pass for an answer: cut off, filtered, or failed. */
const refusal = (call: ModelCall, reply: Dialects.Reply): KernelError | undefined => {
  if (reply.failure !== undefined) return reply.failure
  const provider = call.provider.name
  switch (reply.finish?.reason) {
    case undefined:
      return new ProviderError({ provider, reason: "incomplete", detail: "the reply ended before it was finished" })
    case "content-filter":
      return new ProviderError({
        provider,
        reason: "content_filter",
        detail: "the reply was withheld by a content filter"
      })
    case "error":
      return new ProviderError({ provider, reason: "unknown", detail: "the model reported an error" })
    default:
      return undefined
  }
}

const meaningOf = (run: Run, reply: Dialects.Reply, acts: boolean): Intent => {
  const turn = openTurn(run)
  return intent(reply, {
    turnId: turn.turnId,
    depth: run.state.depth,
    native: turn.dialect === "tools",
    correctsProse: run.agent.prose === "corrective" || (run.agent.prose === "auto" && acts),
    limits: run.limits,
    isProtocol: (type) => isProtocol(run, type),
    parameters: (skill, text) => parametersOf(run, skill, text),
    misfit: (text) => misfit(run, text)
  })
}

const tellReply = (run: Run, heard: Heard, usage: Usage.Usage | null, meaning: Intent) => {
  const { latencyMs, reply } = heard
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
  return settle(run, "onModelCompleted", hook && ((args) => hook({ ...args, raw })), (run) =>
    openTurn(run).pending.length > 0 ? startCalls(run) : endTurn(run)
  )
}

// ---------------------------------------------------------------- the end

/** After the batch: the end of the turn. */
export const afterCalls = (run: Run): Effect.Effect<void, KernelError> =>
  settle(run, "onToolCallsCompleted", run.hooks.onToolCallsCompleted, endTurn)

const endTurn = (run: Run): Effect.Effect<void, KernelError> => {
  const { outcome, turnId } = openTurn(run)
  return Effect.map(commit(run, "phase", [{ type: "turn_completed", turnId }]), () => {
    if (outcome?.type === "final") tell(run, { type: "final", text: outcome.text })
    if (outcome?.type === "final" || outcome?.type === "prose") tell(run, { type: "result", text: outcome.text })
  })
}

/** Decides how it goes on (DR-20): the end, the limit, or the next turn. */
export const afterTurn = (run: Run): Effect.Effect<void, KernelError> =>
  settle(run, "onTurnCompleted", run.hooks.onTurnCompleted, (run) => {
    const turn = turnLog(run.state).last()
    const done = turn !== undefined && turn.completed.length === 0 && turn.outcome?.type !== "corrective"
    if (done && !run.goesOn) return complete(run, "model_done")
    const { emptyReplies, runId } = run.state
    if (emptyReplies === 0) return startTurn(run)
    if (emptyReplies > run.limits.emptyReplies) return Effect.fail(new EmptyReplies({ runId, count: emptyReplies }))
    // A model that says nothing is given a little longer each time.
    return Effect.andThen(Effect.sleep(250 * 2 ** (emptyReplies - 1)), startTurn(run))
  })
