/**
 * From a call to its result (BP-62 to BP-82, DR-14).
 *
 * Whatever a skill or protocol does, a result comes back: failures, defects,
 * timeouts and values that cannot be told are error results whose text the
 * model may read, while the cause goes to the log. Only middleware outside of
 * that can fail here.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { Call, CallError, CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import {
  type ExtensionFailed,
  type LimitExceeded,
  type MediaConflict,
  type MiddlewareTermination,
  type SkillResultInvalid,
  type StoreError,
  ToolNotFound
} from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import * as Messages from "../../Message.ts"
import type { ToolEffect, ToolRun } from "../../Middleware.ts"
import type { AnyProtocol, SkillRequest } from "../../Protocol.ts"
import type { AnySkill, CallScope, Effects, Output } from "../../Skill.ts"
import * as Skills from "../../Skill.ts"
import { builtin } from "./builtins.ts"
import { tell } from "./commit.ts"
import { isWhole } from "../words/contentNeeds.ts"
import { explain } from "./explain.ts"
import { isJsonObject, type JsonObject, requestOf } from "../base/json.ts"
import { limited } from "./timeLimit.ts"
import { isLong, shorten, type Truncated } from "./longResults.ts"
import { plain } from "../base/plain.ts"
import { keyOf, now, type Run, stepOf } from "./run.ts"
import { paramsOf } from "../skill/skillInput.ts"
import { clean, toAnswer } from "../skill/skillOutput.ts"
import { maySpeak, refusalOf, refusalThrough } from "./permissions.ts"

/** Runs a call through the middleware, first outermost (DR-23). */
export const execute = (run: Run, call: Call): Effect.Effect<CallResult, MiddlewareTermination | ExtensionFailed> => {
  let next: ((toolRun: ToolRun) => ToolEffect) | undefined
  for (const { callTool } of run.middleware.toReversed()) {
    if (callTool === undefined) continue
    const inner = next ?? ((toolRun: ToolRun): ToolEffect => perform(run, toolRun.call))
    next = (toolRun) => callTool(toolRun, inner)
  }
  if (next === undefined) return perform(run, call)
  const { context, prompt, rootRunId, runId } = run.state
  return next({ runId, rootRunId, step: stepOf(run.state), context, messages: prompt, call })
}

/** What a call's repetition would do: decides resume, retry and default approval. */
export const effectsOf = (run: Pick<Run, "skills" | "protocols">, call: Call): Effects => {
  switch (call.kind) {
    case "skill": {
      const skill = run.skills.find(call.name ?? "")
      return Option.isSome(skill) ? skill.value.effects : "write"
    }
    case "protocol": {
      const protocol = run.protocols.find(call.name ?? "")
      return Option.isSome(protocol) ? protocol.value.effects : "write"
    }
    // A child run has a journal of its own: to run it again is to resume it.
    case "task":
      return "idempotent"
    case "builtin":
      return "read"
  }
}

const perform = (run: Run, call: Call): Effect.Effect<CallResult> => {
  const { fault } = call
  if (fault !== undefined) return Effect.sync(() => faulty(run, call, fault))
  switch (call.kind) {
    case "builtin":
      return Effect.map(builtin(run, call), (answer) => {
        if (typeof answer !== "string") {
          tell(run, { type: "builtin_error", command: call.name ?? "", error: "unknown" })
          return Calls.failed(call, answer)
        }
        tell(run, { type: "builtin_result", command: call.name ?? "", result: answer })
        return Calls.succeeded(call, [Contents.text(answer)])
      })
    case "protocol":
      return speak(run, call)
    default:
      return useSkill(run, call)
  }
}

/** The span of a call, where somebody watches. */
const traced = <A, E, R>(
  run: Run,
  call: Call,
  { effects, name }: Pick<AnySkill, "effects" | "name">,
  input: unknown,
  body: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  if (run.telemetry === undefined) return body
  const facts = { name, kind: call.kind, callId: call.callId, effects, input: () => shown(run, input) }
  return run.telemetry.tool(body, facts, (output) => ({ output: () => shown(run, output) }))
}

/** What others may see of a value: all of it, but for its secrets. */
const shown = ({ redactor }: Run, value: unknown): unknown =>
  redactor === undefined ? value : plain(value, redactor.text)

const faulty = (run: Run, call: Call, fault: CallError): CallResult => {
  const error = call.name === null ? "no skill name in command block" : fault.message
  tell(run, { type: "skill_error", skill: call.name, callId: call.callId, error })
  return Calls.failed(call, fault)
}

// ---------------------------------------------------------------- skills

const useSkill = (run: Run, call: Call): Effect.Effect<CallResult> => {
  const skill = runnable(run, call)
  return Result.isFailure(skill)
    ? Effect.sync(() => skillFailed(run, call, skill.failure))
    : callSkill(run, call, skill.success)
}

/** The skill that a call means, or why it cannot be run (BP-64 to BP-66). */
export const runnable = (run: Run, call: Call): Result.Result<AnySkill, CallError> => {
  const name = call.name ?? ""
  const skill = Option.getOrUndefined(run.skills.find(name))
  if (skill === undefined) {
    const { _tag, message } = new ToolNotFound({ name })
    return Result.fail(Calls.error(_tag, message))
  }
  const reason = refusalOf(run, skill)
  return reason === undefined
    ? Result.succeed(skill)
    : Result.fail(Calls.error("NotAllowed", `Skill '${name}' ${reason}`, false))
}

const callSkill = (run: Run, call: Call, skill: AnySkill): Effect.Effect<CallResult> => {
  const input = paramsOf(skill, call.input)
  tell(run, { type: "skill_execute", skill: skill.name, callId: call.callId, input })
  const started = now(run)
  const { name } = skill
  const body = traced(run, call, skill, input, skill.call(input, scopeOf(run, call)))
  const leaked = { type: "skill_leaked" as const, skill: name, callId: call.callId }
  const exit = limited(run, leaked, skill.timeout ?? run.limits.skillTimeout, body)
  return Effect.flatMap(exit, (exit) => {
    const durationMs = now(run) - started
    if (Exit.isFailure(exit)) return skillFault(run, call, exit.cause, durationMs)
    return Effect.matchCauseEffect(keep(run, exit.value), {
      onFailure: (cause) => skillFault(run, call, cause, durationMs),
      onSuccess: (kept) => Effect.succeed(skillDone(run, call, name, exit.value, kept, durationMs))
    })
  })
}

const skillFault = (run: Run, call: Call, cause: Cause.Cause<unknown>, durationMs: number): Effect.Effect<CallResult> =>
  Effect.map(explain(run, `Skill '${call.name ?? ""}'`, cause), (error) => skillFailed(run, call, error, durationMs))

const skillDone = (
  run: Run,
  call: Call,
  skill: string,
  output: unknown,
  kept: Kept,
  durationMs: number
): CallResult => {
  const { content, metadata, truncated } = kept
  const told = { type: "skill_result", skill, callId: call.callId, output: shown(run, output), durationMs } as const
  if (metadata === undefined && truncated === undefined) {
    tell(run, told)
    return Calls.succeeded(call, content, { durationMs })
  }
  const facts = { metadata: { ...metadata, ...truncated } }
  tell(run, { ...told, ...facts, ...(truncated === undefined ? {} : { truncated: true }) })
  return Calls.succeeded(call, content, { durationMs, ...facts })
}

const scopeOf = (run: Run, call: Call): CallScope => {
  const { context, currentTurn, depth, rootRunId, runId, taskId } = run.state
  return {
    runId,
    rootRunId,
    callId: call.callId,
    idempotencyKey: keyOf(run.state, call),
    step: stepOf(run.state),
    depth,
    taskId,
    runContext: context,
    dialect: currentTurn?.dialect ?? run.agent.dialect
  }
}

const skillFailed = (run: Run, call: Call, error: CallError, durationMs?: number): CallResult => {
  tell(run, { type: "skill_error", skill: call.name, callId: call.callId, error: error.message })
  return Calls.failed(call, error, durationMs === undefined ? {} : { durationMs })
}

interface Kept {
  readonly content: ReadonlyArray<Content>
  readonly metadata?: JsonObject
  /** What was returned, as JSON. */
  readonly value: Output["value"]
  /** What is to be known of a result that was too long. */
  readonly truncated: Truncated | undefined
}

/** Stores media, references them, and cuts what is too long for a model. */
const keep = (
  run: Run,
  value: unknown,
  read: typeof Skills.toOutput = Skills.toOutput
): Effect.Effect<Kept, SkillResultInvalid | MediaConflict | LimitExceeded | StoreError> => {
  const output = read(value)
  if (Result.isFailure(output)) return Effect.fail(output.failure)
  const { content, media, ...rest } = clean(output.success, run.redactor)
  const kept = (content: ReadonlyArray<Content>): Effect.Effect<Kept> =>
    isLong(content, run.limits.resultBytes)
      ? Effect.map(shorten(run, content), (short) => ({ ...short, ...rest }))
      : Effect.succeed({ content, ...rest, truncated: undefined })
  return media.length === 0 && content.every((part) => part.type === "text" || part.type === "data")
    ? kept(content)
    : Effect.flatMap(run.media.admit([...content, ...media]), kept)
}

// ---------------------------------------------------------------- protocols

const speak = Effect.fnUntraced(function* (run: Run, call: Call) {
  const name = call.name ?? ""
  const protocol = run.protocols.find(name)
  if (Option.isNone(protocol)) {
    return protocolFailed(run, call, Calls.error("ToolNotFound", `Protocol '${name}' has no handler`))
  }
  if (!maySpeak(run, protocol.value)) {
    return protocolFailed(run, call, Calls.error("NotAllowed", `Protocol '${name}' is not allowed`, false))
  }
  const content = requestOf(call.input)
  tell(run, { type: "protocol_execute", protocol: name, callId: call.callId, request: content })
  const started = now(run)
  const leaked = { type: "protocol_leaked" as const, protocol: name, callId: call.callId }
  const limit = protocol.value.timeout ?? run.limits.skillTimeout
  const exit = yield* limited(run, leaked, limit, handle(run, call, protocol.value, content))
  const durationMs = now(run) - started
  if (Exit.isFailure(exit))
    return protocolFailed(run, call, yield* explain(run, `Protocol '${name}'`, exit.cause), durationMs)
  const result = exit.value
  const told = { type: "protocol_result", protocol: name, callId: call.callId, durationMs } as const
  if (isWholeMessage(result)) {
    tell(run, { ...told, result: Contents.toText(result.content[0] ?? Contents.text("")) })
    return Calls.succeeded(call, [], { message: result, durationMs })
  }
  const kept = yield* Effect.exit(keep(run, result, toAnswer))
  if (Exit.isFailure(kept))
    return protocolFailed(run, call, yield* explain(run, `Protocol '${name}'`, kept.cause), durationMs)
  tell(run, { ...told, result: kept.value.value })
  return Calls.succeeded(call, kept.value.content, { durationMs })
})

const blockOf = (protocol: AnyProtocol, call: Call, content: string) => ({
  type: protocol.name,
  name: call.blockName ?? null,
  content
})

/** The skill that a protocol's call is another way to call, if it is. */
export const skillCallOf = (run: Run, call: Call): SkillRequest | undefined => {
  if (call.kind !== "protocol") return undefined
  const protocol = Option.getOrUndefined(run.protocols.find(call.name ?? ""))
  return protocol?.skillOf?.(blockOf(protocol, call, requestOf(call.input)))
}

const handle = (run: Run, call: Call, protocol: AnyProtocol, content: string): Effect.Effect<unknown, unknown> => {
  const scope = { ...scopeOf(run, call), refusal: refusalThrough(run, call) }
  const handled = Effect.suspend(() => protocol.handle(blockOf(protocol, call, content), scope))
  return traced(run, call, protocol, content, handled)
}

const protocolFailed = (run: Run, call: Call, error: CallError, durationMs?: number): CallResult => {
  const facts = durationMs === undefined ? {} : { durationMs }
  const protocol = call.name ?? ""
  tell(run, { type: "protocol_error", protocol, callId: call.callId, error: error.message, ...facts })
  return Calls.failed(call, error, facts)
}

/** What only looks like a message is an answer: a journal that held it could not be read again. */
const isWholeMessage = (value: unknown): value is Message =>
  Messages.isMessage(value) &&
  value.content.every(isWhole) &&
  (value.name === undefined || typeof value.name === "string") &&
  (value.metadata === undefined || (isJsonObject(value.metadata) && Result.isSuccess(Contents.json(value.metadata))))
