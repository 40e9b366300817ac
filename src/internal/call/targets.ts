/**
 * Targets of calls: skills, protocols, builtins, transfers and child runs share one interface.
 */

import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { Call, CallError, CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import { SkillResultInvalid, ToolNotFound } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import type { AnyProtocol, SkillRequest } from "../../Protocol.ts"
import type { AnySkill, CallScope, Effects } from "../../Skill.ts"
import * as Skills from "../../Skill.ts"
import { failureIn } from "../../kit/foreignCode.ts"
import { type Json, jsonObject, type JsonObject, plain, requestOf } from "../../kit/json.ts"
import { paramsOf } from "../skill/skillInput.ts"
import { carried, toAnswer } from "../skill/skillOutput.ts"
import { effectsOf, timeoutOf } from "../policy/callEffects.ts"
import { keyOf, stepOf } from "../state/state.ts"
import type { MediaRef } from "../../RunEvent.ts"
import { references } from "../../store-kit/Medium.ts"
import { builtin } from "./builtins.ts"
import * as Asks from "./callAsks.ts"
import { CallReports } from "./callReports.ts"
import { type LiveEvent, shown } from "../run/publish.ts"
import { explain } from "../skill/failureText.ts"
import { type Kept, isWholeMessage, keep, withIds } from "./keepOutput.ts"
import { callableOf, maySpeak, refusalOf, refusalThrough } from "../model/permissions.ts"
import type { Callable, Run } from "../run/run.ts"
import type { Limit } from "../run/deadline.ts"

/** The result of a successful call, and the event about it. */
export interface Answer {
  readonly output: ReadonlyArray<Content>
  readonly facts?: Pick<CallResult, "message" | "metadata" | "value" | "spent"> | undefined
  readonly event: LiveEvent
  /** Runs after the event. */
  readonly after?: Effect.Effect<unknown>
}

/** The result of a failed call, readable by the model, and the event about it. */
interface Failure extends Pick<CallResult, "output" | "spent"> {
  readonly error: CallError
  readonly event: LiveEvent
  readonly after?: Effect.Effect<unknown>
}

/** Something that can be called. `E` are errors that concern the run itself rather than the call. */
export interface Target<A = unknown, E = never> {
  readonly name: string
  readonly effects: Effects
  readonly input: unknown
  /** Questions of this execution to a person or the model. */
  readonly asks?: Asks.CallAsks
  /** Undefined for targets of the kernel, which have no timeout. */
  readonly limit: Limit | undefined
  readonly started: LiveEvent | undefined
  readonly perform: Effect.Effect<A, unknown>
  readonly keep: (value: A, durationMs: number) => Effect.Effect<Answer, unknown>
  readonly concerns: (error: unknown) => error is E
  readonly fail: (cause: Cause.Cause<unknown>, durationMs: number) => Effect.Effect<Failure, E>
}

/** Finds the target of a call, or the reason why it cannot be called. */
export const targetOf = (run: Run, call: Call): Result.Result<Target, CallError> => {
  if (call.fault !== undefined) return Result.fail(call.fault)
  switch (call.kind) {
    case "builtin":
      return Result.succeed(builtinTarget(run, call))
    case "protocol":
      return Result.map(usableProtocol(run, call), (protocol) => protocolTarget(run, call, protocol))
    case "handoff":
      return Result.map(askable(run, call), (callable) => handoffTarget(run, call, callable))
    default:
      return Result.map(runnable(run, call), (skill) => new SkillTarget(run, call, skill))
  }
}

/** Finds the target of any call, or the reason why it cannot be called. */
export const targetFor = (run: Run, call: Call): Result.Result<unknown, CallError> =>
  call.kind !== "agent" ? targetOf(run, call) : call.fault === undefined ? askable(run, call) : Result.fail(call.fault)

/** Returns the event of a call that was not sent. */
export const refusedEvent = ({ callId, fault, kind, name }: Call, { message }: CallError): LiveEvent => {
  if (kind === "protocol" && fault === undefined) {
    return { type: "protocol_error", protocol: name ?? "", callId, error: message }
  }
  const error = fault !== undefined && name === null ? "no skill name in command block" : message
  return { type: "skill_error", skill: name, callId, error }
}

/** The errors of most targets concern the call alone. */
const concernsCall = (_error: unknown): _error is never => false

// ---------------------------------------------------------------- skills

/** Finds the skill that a call names, or the reason why it cannot run. */
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

/** A skill as a target. A class for speed, because skills are the most frequent targets. */
class SkillTarget implements Target {
  readonly name: string
  readonly effects: Effects
  readonly input: JsonObject
  readonly asks: Asks.CallAsks
  readonly #run: Run
  readonly #call: Call
  readonly #skill: AnySkill

  constructor(run: Run, call: Call, skill: AnySkill) {
    this.#run = run
    this.#call = call
    this.#skill = skill
    this.name = skill.name
    this.effects = effectsOf(run, call)
    this.input = paramsOf(skill, call.input)
    this.asks = new Asks.CallAsks(run, call)
  }

  get limit(): Limit {
    return {
      timeout: timeoutOf(this.#call, this.#skill.timeout ?? this.#run.limits.skillTimeout),
      leaked: { type: "call_leaked", name: this.name, callId: this.#call.callId }
    }
  }

  get started(): LiveEvent {
    const { produces } = this.#skill
    const event = { type: "skill_execute", skill: this.name, callId: this.#call.callId, input: this.input } as const
    return produces.length === 0 ? event : { ...event, produces }
  }

  get perform(): Effect.Effect<unknown, unknown> {
    return reporting(this.#run, this.#call, this.#skill, this.input, this.asks)
  }

  keep(value: unknown, durationMs: number): Effect.Effect<Answer, unknown> {
    return Effect.flatMapEager(keep(this.#run, value, Skills.toOutput), (kept) => {
      const undeclared = unexpected(this.#skill, kept)
      if (undeclared !== undefined) return Effect.fail(undeclared)
      return Effect.succeed(skillAnswer(this.#run, this.#call, this.name, withIds(value, kept), kept, durationMs))
    })
  }

  concerns(error: unknown): error is never {
    return concernsCall(error)
  }

  fail(cause: Cause.Cause<unknown>): Effect.Effect<Failure> {
    const { name } = this
    const { callId } = this.#call
    const failure = explainFailure(this.#run, `Skill '${name}'`, cause, this.#skill.encodeFailure)
    return Effect.map(failure, ({ error, ...facts }) => ({
      error,
      ...facts,
      event: { type: "skill_error", skill: name, callId, error: error.message }
    }))
  }
}

/** Calls a skill, and ends its reports when it returns. */
const reporting = (
  run: Run,
  call: Call,
  skill: AnySkill,
  input: Parameters<AnySkill["call"]>[0],
  { answered, ask, sample }: Asks.CallAsks
): Effect.Effect<unknown, unknown> => {
  const reports = new CallReports(run, skill.name, call.callId)
  const scope = { ...scopeOf(run, call), report: reports.report, answered, ask, sample }
  return Effect.onExit(skill.call(input, scope), () => {
    reports.end()
    return Effect.void
  })
}

/** Returns the error of a result with media of an undeclared kind. A skill that declares none may return any. */
const unexpected = ({ produces }: AnySkill, { content }: Kept): SkillResultInvalid | undefined => {
  if (produces.length === 0) return undefined
  const undeclared = content.find((part) => Contents.isMedia(part) && !produces.includes(part.type))
  if (undeclared === undefined) return undefined
  return new SkillResultInvalid({
    path: "/media",
    reason: `${undeclared.type} is none of what it produces: ${produces.join(", ")}`
  })
}

const skillAnswer = (
  run: Run,
  { callId }: Call,
  skill: string,
  value: unknown,
  kept: Kept,
  durationMs: number
): Answer => {
  const { content, isShownAsText, metadata, truncated } = kept
  const facts =
    metadata === undefined && truncated === undefined ? undefined : { metadata: { ...metadata, ...truncated } }
  return {
    output: content,
    facts: isShownAsText === true && truncated === undefined ? { ...facts, value: kept.value } : facts,
    event: {
      type: "skill_result",
      skill,
      callId,
      output: shown(run, value),
      ...mediaIn(content, kept.bytesTypes),
      durationMs,
      ...facts,
      ...(truncated && { truncated: true })
    }
  }
}

export const scopeOf = (run: Run, call: Call): CallScope => {
  const { caller, context, currentTurn, depth, rootRunId, runId, taskId } = run.state
  return {
    runId,
    rootRunId,
    callId: call.callId,
    idempotencyKey: keyOf(run.state, call),
    step: stepOf(run.state),
    depth,
    taskId,
    runContext: context,
    ...(caller === undefined ? {} : { caller }),
    ...(call.approval === undefined ? {} : { approval: call.approval }),
    dialect: currentTurn?.dialect ?? run.agent.dialect
  }
}

/** Returns a failure as text, with the media it carries. Media that cannot be stored are left out. */
const explainFailure = (
  run: Run,
  subject: string,
  cause: Cause.Cause<unknown>,
  encode?: AnySkill["encodeFailure"]
): Effect.Effect<Pick<Failure, "error" | "output">> =>
  Effect.flatMap(explain(run, subject, cause, encode), (error) => {
    const parts = carried(failureIn(cause))
    const media = parts === undefined ? [] : [...parts.content.filter(Contents.isMedia), ...parts.media]
    return media.length === 0
      ? Effect.succeed({ error })
      : Effect.match(run.media.admit(media), {
          onFailure: () => ({ error }),
          onSuccess: (output) => ({ error, output })
        })
  })

// ---------------------------------------------------------------- agents

/** Finds the agent that a call names, or the reason why it cannot be called. */
export const askable = (run: Run, call: Call): Result.Result<Callable, CallError> => {
  const name = call.name ?? ""
  const callable = callableOf(run, name)
  return callable?.kind === call.kind
    ? Result.succeed(callable)
    : Result.fail(Calls.error("NotAllowed", `Agent '${name}' is not available`, false))
}

/**
 * Returns the target of a transfer. It resolves the other agent and its model, so that a conversation is handed over
 * only to an agent that can run.
 */
const handoffTarget = (run: Run, call: Call, { agent, skill }: Callable): Target => {
  const { name: command } = skill
  const input = jsonObject(call.input)
  return {
    name: command,
    effects: "read",
    input,
    limit: undefined,
    started: undefined,
    perform: Effect.andThen(run.member(agent.name), skill.call(input, scopeOf(run, call))),
    keep: (value) => {
      const result = String(value)
      return Effect.succeed({ output: [Contents.text(result)], event: { type: "builtin_result", command, result } })
    },
    concerns: concernsCall,
    fail: (cause) =>
      Effect.map(explain(run, `Agent '${agent.name}'`, cause), (error) => ({
        error,
        event: { type: "builtin_error", command, error: error.message }
      }))
  }
}

// ---------------------------------------------------------------- protocols

const usableProtocol = (run: Run, call: Call): Result.Result<AnyProtocol, CallError> => {
  const name = call.name ?? ""
  const protocol = run.protocols.find(name)
  if (Option.isNone(protocol)) return Result.fail(Calls.error("ToolNotFound", `Protocol '${name}' has no handler`))
  return maySpeak(run, protocol.value)
    ? Result.succeed(protocol.value)
    : Result.fail(Calls.error("NotAllowed", `Protocol '${name}' is not allowed`, false))
}

const protocolTarget = (run: Run, call: Call, protocol: AnyProtocol): Target => {
  const { name } = protocol
  const { callId } = call
  const request = requestOf(call.input)
  const asks = new Asks.CallAsks(run, call)
  const { answered, ask, sample } = asks
  const scope = { ...scopeOf(run, call), answered, ask, sample, refusal: refusalThrough(run, call) }
  return {
    name,
    effects: effectsOf(run, call),
    input: request,
    asks,
    limit: {
      timeout: protocol.timeout ?? run.limits.skillTimeout,
      leaked: { type: "call_leaked", name, callId }
    },
    started: { type: "protocol_execute", protocol: name, callId, request },
    perform: Effect.suspend(() => protocol.handle(blockOf(protocol, call, request), scope)),
    keep: (value, durationMs) => {
      const event = (result: Json, more: object | undefined): LiveEvent => ({
        type: "protocol_result",
        protocol: name,
        callId,
        durationMs,
        result,
        ...more
      })
      return isWholeMessage(value)
        ? Effect.succeed({
            output: [],
            facts: { message: value },
            event: event(firstText(value), { message: plain(value, run.redactor?.text), ...mediaIn(value.content) })
          })
        : Effect.map(keep(run, value, toAnswer), (kept) => ({
            output: kept.content,
            event: event(kept.value, mediaIn(kept.content, kept.bytesTypes))
          }))
    },
    concerns: concernsCall,
    fail: (cause, durationMs) =>
      Effect.map(explainFailure(run, `Protocol '${name}'`, cause), ({ error, ...facts }) => ({
        error,
        ...facts,
        event: { type: "protocol_error", protocol: name, callId, error: error.message, durationMs }
      }))
  }
}

/** Returns references to the media of an answer, for its event. */
const mediaIn = (
  content: ReadonlyArray<Contents.Content>,
  bytesTypes?: ReadonlyMap<string, string>
): { readonly media: ReadonlyArray<MediaRef> } | undefined => {
  if (!content.some(Contents.isMedia)) return undefined
  return { media: references(content, bytesTypes) }
}

const firstText = ({ content }: Message): string => Contents.toText(content[0] ?? Contents.text(""))

const blockOf = (protocol: AnyProtocol, call: Call, content: string) => ({
  type: protocol.name,
  name: call.blockName ?? null,
  content
})

/** Returns the skill that a protocol call stands for, if any. */
export const skillCallOf = (run: Run, call: Call): SkillRequest | undefined => {
  if (call.kind !== "protocol") return undefined
  const protocol = Option.getOrUndefined(run.protocols.find(call.name ?? ""))
  return protocol?.skillOf?.(blockOf(protocol, call, requestOf(call.input)))
}

// ---------------------------------------------------------------- builtins

const builtinTarget = (run: Run, call: Call): Target => {
  const command = call.name ?? ""
  return {
    name: command,
    effects: "read",
    input: call.input,
    limit: undefined,
    started: undefined,
    perform: builtin(run, command, call.input),
    keep: (value) => {
      const result = String(value)
      return Effect.succeed({ output: [Contents.text(result)], event: { type: "builtin_result", command, result } })
    },
    concerns: concernsCall,
    fail: () =>
      Effect.succeed({
        error: Calls.error("UnknownCommand", `Unknown command '${command}'`),
        event: { type: "builtin_error", command, error: "unknown" }
      })
  }
}
