/**
 * The provider of a program: its replies are the calls that the program makes, and at last its result.
 */

import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type ProgramError, ProgramFailed } from "../../KernelError.ts"
import type { JsonObject } from "../../kit/json.ts"
import type { ProviderShape } from "../../Provider.ts"
import type { Message } from "../../Message.ts"
import type { Turn } from "../../RunModel.ts"
import { turnLog } from "../state/state.ts"
import { finish, type StreamPart, text } from "../../StreamPart.ts"
import { causeText, failureIn, logged, messageOf, tagOf } from "../../kit/foreignCode.ts"
import { CurrentRun, type ReadableRun } from "../state/currentRun.ts"
import { type Asked, type Program, Session } from "./session.ts"

/** Runs a program on the first message of its run, and returns its result as the text of an answer. */
export type Body = (input: Message | undefined) => Effect.Effect<string, unknown, Program>

/** Replies as a program. It has a session for each run, as long as the run is in this process. */
export class Interpreter implements ProviderShape<ProgramError> {
  readonly name = "program"
  readonly #program: string
  readonly #version: number
  readonly #body: Body
  readonly #sessions = new Map<string, Session>()
  /** Every reply is read from the run of its fiber, so one stream gives them all. */
  readonly #stream: Stream.Stream<StreamPart, ProgramError>

  constructor(program: string, version: number, body: Body) {
    this.#program = program
    this.#version = version
    this.#body = body
    this.#stream = Stream.fromChannel(Channel.fromEffect(this.#replies()))
  }

  readonly stream: ProviderShape<ProgramError>["stream"] = () => this.#stream

  /** Runs a step of the run's open turn. */
  readonly step = (callId: string): Effect.Effect<unknown, unknown> =>
    Effect.gen({ self: this }, function* () {
      const run = yield* readable
      const effect = yield* this.#sessionOf(run).effectOf(run, callId)
      return effect === undefined ? yield* Effect.die(new Error(`no step ${callId}`)) : yield* effect
    })

  /** Ends the programs that are left. */
  readonly close: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forEach(this.#sessions.values(), ({ close }) => close, { discard: true, concurrency: "unbounded" })
  )

  #replies(): Effect.Effect<Parts, ProgramError> {
    return Effect.gen({ self: this }, function* () {
      const run = yield* readable
      const isFirst = firstTurnOf(run) === undefined
      const session = this.#sessionOf(run)
      const reply = yield* session.next(run)
      if (Exit.isExit(reply)) return yield* this.#answer(reply)
      const calls = callParts(run.state.currentTurn?.turnId ?? "", reply)
      const facts = { ...(isFirst ? session.start : {}), ...linesOf(reply) }
      return Object.keys(facts).length === 0 ? calls : [kept(facts), ...calls]
    })
  }

  #sessionOf(run: ReadableRun): Session {
    const { history, input, runId } = run.state
    const known = this.#sessions.get(runId)
    if (known !== undefined) return known
    const recorded = recordedStart(keptIn(firstTurnOf(run)?.message))
    const start = Option.getOrElse(recorded, () => ({ version: this.#version, seed: runId }))
    const session = new Session(this.#program, start, turnsBefore(run), this.#body(input[history]))
    this.#sessions.set(runId, session)
    return session
  }

  #answer(exit: Exit.Exit<string, unknown>): Effect.Effect<Parts, ProgramFailed> {
    if (Exit.isSuccess(exit)) {
      return Effect.succeed([...textParts(exit.value), finish("stop", free)])
    }
    const { cause } = exit
    const failure = failureIn(cause)
    const failed = (error: string, detail: string) =>
      Effect.fail(new ProgramFailed({ program: this.#program, error, detail }))
    return cause.reasons.some(Cause.isFailReason)
      ? failed(tagOf(failure), messageOf(failure))
      : Effect.andThen(
          logged(Effect.logError(`the program '${this.#program}' failed unexpectedly`, causeText(cause))),
          failed("Defect", "it failed unexpectedly")
        )
  }
}

/** The run of this fiber. A program is called only by the loop of a run. */
const readable = Effect.flatMap(CurrentRun, (run) =>
  run === undefined ? Effect.die(new Error("a program runs in a run only")) : Effect.succeed(run)
)

/** Reads the first reply of a program. */
const recordedStart = Schema.decodeUnknownOption(Schema.Struct({ version: Schema.Int, seed: Schema.String }))

/** Returns the number of turns before the program, which another agent may have handed its conversation to. */
const turnsBefore = ({ state: { handoff } }: ReadableRun): number => (handoff?.turn ?? 1) - 1

/** Returns the first turn of the program, once it has a reply. */
const firstTurnOf = (run: ReadableRun): Turn | undefined => {
  const turn = turnLog(run.state).at(turnsBefore(run)) ?? run.state.currentTurn
  return turn?.message === undefined ? undefined : turn
}

/** Returns what a reply keeps for the program. */
const keptIn = (message: Message | undefined): unknown => {
  const [first] = message?.content ?? []
  return first?.type === "thinking" ? first.signature : undefined
}

type Parts = Arr.NonEmptyReadonlyArray<StreamPart>

/** Stores facts in the reply as the signature of its thinking, which is not shown. */
const kept = (facts: JsonObject): StreamPart => ({ type: "reasoning-end", id: "0", metadata: { program: facts } })

const textParts = (value: string): Parts => [
  { type: "text-start", id: "0" },
  text(value),
  { type: "text-end", id: "0" }
]

const callParts = (turnId: string, calls: ReadonlyArray<Asked>): Parts =>
  Arr.append(
    calls.map(
      ({ input, name }, index) => ({ type: "tool-call", id: `${turnId}.${index}`, name, params: input }) as const
    ),
    finish("tool-calls", free)
  )

/** Returns the lines of the calls, for people who look at the program. */
const linesOf = (calls: ReadonlyArray<Asked>): JsonObject =>
  calls.some(({ line }) => line !== undefined) ? { lines: calls.map(({ line }) => line ?? null) } : {}

/** The usage of a reply that no model wrote. */
const free = { inputTokens: { total: 0 }, outputTokens: { total: 0 } }
